package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/warmpath/warmpath/bench/cpu"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/xds"
)

// planeRow is what a control plane took.
type planeRow struct {
	Endpoints int `json:"endpoints"`
	Clients   int `json:"clients"`
	// First is from the first Publish to the last client's acknowledgement.
	First time.Duration `json:"first_ns"`
	// Changes of one endpoint that leaves and one that comes, one after the other;
	// Wanted is how many there should have been in the time.
	Changes int `json:"changes"`
	Wanted  int `json:"wanted"`
	// Publish is how long the call takes, Propagation from its begin to the last
	// client's acknowledgement. Both are sorted.
	Publish     []time.Duration `json:"publish_ns"`
	Propagation []time.Duration `json:"propagation_ns"`
	// CPU of the control plane's process for a change, all clients included, and
	// Bytes that one client is sent.
	CPU   time.Duration `json:"cpu_per_change_ns"`
	Bytes int64         `json:"bytes_per_change_and_client"`
	// Heap is what is alive at the end.
	Heap uint64 `json:"live_heap_bytes"`
}

// plane is a control plane with clients.
type plane struct {
	pool  *xds.Pool
	bytes sent
	acks  chan struct{} // one for each acknowledgement of the first generation
	close func()
}

// sent counts the bytes of messages to clients, as they are on the wire.
type sent struct{ bytes atomic.Int64 }

func (s *sent) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (s *sent) HandleRPC(_ context.Context, what stats.RPCStats) {
	if message, ok := what.(*stats.OutPayload); ok {
		s.bytes.Add(int64(message.WireLength))
	}
}

func (s *sent) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (s *sent) HandleConn(context.Context, stats.ConnStats) {}

// measurePlane lets endpoints come and go.
func measurePlane(ctx context.Context, o options, endpoints int) (row planeRow, err error) {
	row = planeRow{Endpoints: endpoints, Clients: o.clients, Wanted: int(o.duration.Seconds() * float64(o.rate))}
	p := &plane{acks: make(chan struct{}, o.clients)}
	connected := make(chan struct{}, o.clients)
	address, err := p.serve(connected)
	if err != nil {
		return row, err
	}
	defer p.close()
	leave, err := startCrowd(ctx, address, o.clients)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if err := count(ctx, connected, o.clients); err != nil {
		return row, fmt.Errorf("wait for %d clients to connect: %w", o.clients, err)
	}
	begin := time.Now()
	if _, err := p.pool.Publish(members(endpoints, 0)); err != nil {
		return row, err
	}
	if err := count(ctx, p.acks, o.clients); err != nil {
		return row, fmt.Errorf("wait for %d clients to take the endpoints: %w", o.clients, err)
	}
	row.First = time.Since(begin)
	if err := p.churn(ctx, o, &row); err != nil {
		return row, err
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	row.Heap = m.HeapAlloc
	return row, nil
}

// serve makes the control plane listen; connected is told of each stream.
func (p *plane) serve(connected chan<- struct{}) (address string, err error) {
	server := xds.New(xds.Observer{OnAck: func(_ string, generation uint64) {
		if generation == 1 {
			p.acks <- struct{}{}
		}
	}})
	if p.pool, err = server.Add(xds.Options{}); err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	g := grpc.NewServer(grpc.StatsHandler(&p.bytes), grpc.StreamInterceptor(
		func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			connected <- struct{}{}
			return handle(srv, stream)
		}))
	server.Register(g)
	done := make(chan error, 1)
	go func() { done <- g.Serve(listener) }()
	p.close = func() {
		server.Close()
		g.Stop()
		<-done // it was stopped, whatever it says
	}
	return listener.Addr().String(), nil
}

// count waits for so many signals.
func count(ctx context.Context, signals <-chan struct{}, n int) error {
	for range n {
		select {
		case <-signals:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// churn changes the membership at the rate that was asked for. A change that takes
// longer delays the next, as in a rollout.
func (p *plane) churn(ctx context.Context, o options, row *planeRow) error {
	ticker := time.NewTicker(time.Second / time.Duration(o.rate))
	defer ticker.Stop()
	bytes := p.bytes.bytes.Load()
	used, err := cpu.Used(os.Getpid())
	if err != nil {
		return err
	}
	for end := time.Now().Add(o.duration); time.Now().Before(end) && row.Changes < row.Wanted; row.Changes++ {
		set := members(row.Endpoints, row.Changes+1)
		<-ticker.C
		begin := time.Now()
		generation, err := p.pool.Publish(set)
		if err != nil {
			return err
		}
		row.Publish = append(row.Publish, time.Since(begin))
		if err := p.pool.Acked(ctx, generation); err != nil {
			return err
		}
		row.Propagation = append(row.Propagation, time.Since(begin))
	}
	after, err := cpu.Used(os.Getpid())
	if err != nil {
		return err
	}
	row.CPU = (after - used) / time.Duration(row.Changes)
	row.Bytes = (p.bytes.bytes.Load() - bytes) / int64(row.Changes*row.Clients)
	slices.Sort(row.Publish)
	slices.Sort(row.Propagation)
	return nil
}

// members are n endpoints after so many changes: each takes the first away and adds
// one at the end.
func members(n, changes int) fleet.Set {
	endpoints := make([]fleet.Endpoint, n)
	first := netip.MustParseAddr("10.0.0.1").As4()
	base := uint32(first[0])<<24 | uint32(first[1])<<16 | uint32(first[2])<<8 | uint32(first[3])
	for i := range endpoints {
		ip := base + uint32(changes+i)
		address := netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)})
		endpoints[i] = fleet.Endpoint{Address: netip.AddrPortFrom(address, 8000).String(), Weight: 1}
	}
	set, _ := fleet.NewSet(endpoints)
	return set
}

// service is the name under which the first cluster of an answer has its endpoints.
func service(answer *discovery.DeltaDiscoveryResponse) string {
	for _, r := range answer.GetResources() {
		cluster := new(clusterv3.Cluster)
		if r.GetResource().UnmarshalTo(cluster) == nil {
			return cluster.GetEdsClusterConfig().GetServiceName()
		}
	}
	return ""
}
