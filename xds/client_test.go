package xds

import (
	"context"
	"net"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// patience bounds every wait that a correct server ends at once.
const patience = 20 * time.Second

// serve runs the server over in-memory connections until the test ends.
func serve(t *testing.T, s *Server) *grpc.ClientConn {
	t.Helper()
	conn := serveAll(t, s, 1<<20)()
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// serveAll is serve for several connections, each of which has two buffers of so many
// bytes: it returns what makes one, which the caller closes.
func serveAll(t *testing.T, s *Server, buffer int) (connect func() *grpc.ClientConn) {
	t.Helper()
	lis := bufconn.Listen(buffer)
	g := grpc.NewServer()
	s.Register(g)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(lis)
	}()
	t.Cleanup(func() {
		s.Close()
		g.Stop()
		<-done
	})
	return func() *grpc.ClientConn {
		conn, err := grpc.NewClient(
			"passthrough:///bufconn",
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
		)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
}

// peer speaks Envoy's side of one delta stream.
type peer struct {
	t      *testing.T
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	close  context.CancelFunc
}

// dial opens a stream and asks for the clusters, as Envoy does first.
func dial(t *testing.T, conn *grpc.ClientConn, node string) *peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, stream: stream, close: cancel}
	p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType, Node: &corev3.Node{Id: node}})
	return p
}

func (p *peer) send(r *discovery.DeltaDiscoveryRequest) {
	p.t.Helper()
	if err := p.stream.Send(r); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) recv(typeURL string) *discovery.DeltaDiscoveryResponse {
	p.t.Helper()
	r, err := p.stream.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	if r.GetTypeUrl() != typeURL {
		p.t.Fatalf("got %s, want %s", r.GetTypeUrl(), typeURL)
	}
	return r
}

func (p *peer) ack(r *discovery.DeltaDiscoveryResponse) {
	p.t.Helper()
	p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
}

func (p *peer) nack(r *discovery.DeltaDiscoveryResponse, message string) {
	p.t.Helper()
	p.send(&discovery.DeltaDiscoveryRequest{
		TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), ErrorDetail: &rpcstatus.Status{Code: 13, Message: message},
	})
}

// subscribe asks for the endpoints, telling the versions held from before.
func (p *peer) subscribe(service string, held map[string]string) {
	p.t.Helper()
	p.send(&discovery.DeltaDiscoveryRequest{
		TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{service}, InitialResourceVersions: held,
	})
}

// join does all that a starting Envoy does and returns the endpoints it got.
func join(t *testing.T, conn *grpc.ClientConn, s *Server, node string) (*peer, *discovery.DeltaDiscoveryResponse) {
	t.Helper()
	p := dial(t, conn, node)
	p.ack(p.recv(resource.ClusterType))
	p.subscribe(serviceName(pool(s).cluster), nil)
	r := p.recv(resource.EndpointType)
	p.ack(r)
	return p, r
}

// addresses lists the hosts of a response, sorted as sent.
func addresses(t *testing.T, r *discovery.DeltaDiscoveryResponse) []string {
	t.Helper()
	var all []string
	for _, res := range r.GetResources() {
		cla := new(endpointv3.ClusterLoadAssignment)
		if err := res.GetResource().UnmarshalTo(cla); err != nil {
			t.Fatal(err)
		}
		for _, zone := range cla.GetEndpoints() {
			for _, e := range zone.GetLbEndpoints() {
				all = append(all, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			}
		}
	}
	return all
}
