package xds

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// Two pools on one stream: each has its own endpoints, generations and answers.
func TestPoolsAreApart(t *testing.T) {
	s := serverOf(t, Observer{}, Options{}, Options{Name: "llama"})
	conn := serve(t, s)
	first, second := s.pools[0], s.pools[1]
	publishTo(t, first, "10.0.0.1")
	p := dial(t, conn, "envoy")
	clusters := p.recv(resource.ClusterType) // a new Envoy need not wait for the other
	if len(clusters.GetResources()) != 1 {
		t.Errorf("%d clusters, want 1", len(clusters.GetResources()))
	}
	p.ack(clusters)
	g := publishTo(t, second, "10.0.1.1")
	p.ack(p.recv(resource.ClusterType))

	if joined(second) {
		t.Error("an Envoy that has not asked for the endpoints has joined")
	}
	p.subscribe(serviceName(first.cluster), nil)
	p.ack(p.recv(resource.EndpointType))
	ackedNow(t, first, first.generation)
	if joined(second) || !joined(first) {
		t.Error("an Envoy has joined the pool whose endpoints it asked for, and only that")
	}
	p.subscribe(serviceName(second.cluster), nil)
	r := p.recv(resource.EndpointType)
	if got := addresses(t, r); !slices.Equal(got, []string{"10.0.1.1"}) {
		t.Errorf("the second pool has %q", got)
	}
	if acked(second, g) == nil {
		t.Error("the second pool is acknowledged before the answer")
	}
	p.ack(r)
	ackedNow(t, second, g)

	publishTo(t, second, "10.0.1.2") // a change of one holds up nobody who waits for the other
	changed := p.recv(resource.EndpointType)
	ackedNow(t, first, first.generation)
	if acked(second, second.generation) == nil {
		t.Error("the change is acknowledged before the answer")
	}
	p.nack(changed, "no")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := second.Acked(ctx, second.generation); !errors.Is(err, ErrRefused) {
		t.Errorf("a refusal of the second pool's endpoints: %v", err)
	}
	if st := first.Status(); st.Clients[0].Refused != 0 || st.Clients[0].Acked != first.generation {
		t.Errorf("the first pool's status tells of the second's refusal: %+v", st)
	}
}

// A name that an earlier control plane made for one pool gets that pool's members.
func TestOldNameOfAPool(t *testing.T) {
	s := serverOf(t, Observer{}, Options{}, Options{Name: "llama"})
	conn := serve(t, s)
	publishTo(t, s.pools[0], "10.0.0.1")
	publishTo(t, s.pools[1], "10.0.1.1")
	for service, want := range map[string]string{
		"llama/0123456789abcdef":  "10.0.1.1",
		"nobody/0123456789abcdef": "10.0.0.1", // the first pool's, as it was before there were several
	} {
		p := dial(t, conn, "envoy")
		p.ack(p.recv(resource.ClusterType))
		p.subscribe(service, nil)
		if got := addresses(t, p.recv(resource.EndpointType)); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %s", service, got, want)
		}
	}
}

func TestTwoPoolsOfOneName(t *testing.T) {
	s := serverOf(t, Observer{}, Options{})
	if _, err := s.Add(Options{}); err == nil || !strings.Contains(err.Error(), "two pools") {
		t.Errorf("a second pool of the same name: %v", err)
	}
	s.Close()
}

// An Envoy that has a pool already waits until its members are known again.
func TestEnvoyKeepsWhatIsNotKnownYet(t *testing.T) {
	s := serverOf(t, Observer{}, Options{}, Options{Name: "llama"})
	conn := serve(t, s)
	publishTo(t, s.pools[0], "10.0.0.1")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, stream: stream, close: cancel}
	p.send(&discovery.DeltaDiscoveryRequest{
		TypeUrl: resource.ClusterType, Node: &corev3.Node{Id: "old"},
		InitialResourceVersions: map[string]string{"warmpath_pool": "1", "llama": "1"},
	})
	got := make(chan *discovery.DeltaDiscoveryResponse, 1)
	go func() {
		if r, err := stream.Recv(); err == nil {
			got <- r
		}
	}()
	other := dial(t, conn, "new")
	other.recv(resource.ClusterType) // while it waits
	if len(got) > 0 {
		t.Errorf("it was told of clusters: %v", <-got)
	}
	publishTo(t, s.pools[1], "10.0.1.1")
	if r := <-got; len(r.GetRemovedResources()) > 0 || len(r.GetResources()) != 2 {
		t.Errorf("then it got %d clusters and lost %q", len(r.GetResources()), r.GetRemovedResources())
	}
}

// Envoy has both clusters; a control plane that comes back with one pool only takes
// none of them away before it knows the other.
func TestPoolsInEnvoy(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t)
	before := serverOf(t, Observer{}, Options{}, Options{Name: "llama"})
	kill := e.control(before)
	publishTo(t, before.pools[0], "127.0.0.1")
	publishTo(t, before.pools[1], "127.0.0.2")
	e.waitReady()
	both := func() bool {
		return e.stat("cluster.warmpath_pool.membership_total") == "1" && e.stat("cluster.llama.membership_total") == "1"
	}
	eventually(t, "both pools", both)
	kill()
	after := serverOf(t, Observer{}, Options{}, Options{Name: "llama"})
	e.control(after)
	publishTo(t, after.pools[0], "127.0.0.1", "127.0.0.3")
	eventually(t, "Envoy is back", func() bool { return e.stat("control_plane.connected_state") == "1" })
	if !both() {
		t.Error("a pool changed before the control plane knew the other's members")
	}
	publishTo(t, after.pools[1], "127.0.0.2", "127.0.0.4", "127.0.0.5")
	eventually(t, "the new members", func() bool {
		return e.stat("cluster.warmpath_pool.membership_total") == "2" && e.stat("cluster.llama.membership_total") == "3"
	})
}

func joined(p *Pool) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return p.Joined(ctx) == nil
}

// acked is the answer of this moment.
func acked(p *Pool, generation uint64) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return p.Acked(ctx, generation)
}

func ackedNow(t *testing.T, p *Pool, generation uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Acked(ctx, generation); err != nil {
		t.Fatal(err)
	}
}
