package xds

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
)

// Fifty Envoys lose their connections at once and come back at once, ten times, while
// the endpoints change. Each gets what holds now, once, and nothing of them is left.
func TestStormOfReconnects(t *testing.T) {
	const envoys, rounds, buffer = 50, 10, 4 << 10
	s := newServer(t, Observer{})
	connect := serveAll(t, s, buffer)
	conns := make([]*grpc.ClientConn, envoys)
	peers := make([]*peer, envoys)
	var live [rounds]uint64
	leave := func() {
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close()
			}
		}
	}
	defer leave()
	for round := range rounds {
		leave()
		want := fmt.Sprintf("10.0.0.%d", round+1)
		generation := publish(t, s, want)
		for i := range peers {
			conns[i] = connect()
			peers[i] = dial(t, conns[i], fmt.Sprintf("envoy-%d", i))
		}
		for _, p := range peers {
			p.ack(p.recv(resource.ClusterType))
			p.subscribe(serviceName(pool(s).cluster), nil)
		}
		for i, p := range peers {
			r := p.recv(resource.EndpointType)
			if got := addresses(t, r); !slices.Equal(got, []string{want}) {
				t.Fatalf("round %d: envoy %d has %v, want %s", round, i, got, want)
			}
			p.ack(r)
		}
		waitAcked(t, s, generation)
		// What comes next is the next change: nobody was sent anything twice.
		next := fmt.Sprintf("10.0.1.%d", round+1)
		generation = publish(t, s, next)
		for i, p := range peers {
			r := p.recv(resource.EndpointType)
			if got := addresses(t, r); !slices.Equal(got, []string{next}) {
				t.Fatalf("round %d: envoy %d was sent %v, want %s", round, i, got, next)
			}
			p.ack(r)
		}
		waitAcked(t, s, generation)
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		live[round] = m.HeapAlloc
	}
	t.Logf("%d KiB alive after the second round, %d after the last", live[1]>>10, live[rounds-1]>>10)
	// The buffers of connections that are closed may be alive for a while: 4 MiB.
	if live[rounds-1] > live[1]+envoys*rounds*2*buffer+2<<20 {
		t.Errorf("%d bytes alive after the last round, %d after the second", live[rounds-1], live[1])
	}
}
