package xds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
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

// returning opens the stream of an Envoy that has clusters and endpoints from before,
// of which it tells by their names.
func returning(t *testing.T, conn *grpc.ClientConn, services ...string) *peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, stream: stream, close: cancel}
	clusters, endpoints := make(map[string]string), make(map[string]string)
	for _, service := range services {
		cluster, _, _ := strings.Cut(service, "/")
		clusters[cluster], endpoints[service] = "1", "1"
	}
	p.send(&discovery.DeltaDiscoveryRequest{
		TypeUrl: resource.ClusterType, Node: &corev3.Node{Id: "old"}, InitialResourceVersions: clusters,
	})
	p.send(&discovery.DeltaDiscoveryRequest{
		TypeUrl: resource.EndpointType, ResourceNamesSubscribe: services, InitialResourceVersions: endpoints,
	})
	return p
}

// next returns the names of what comes next of each type, and what is taken away, in
// whatever order the types come.
func (p *peer) next() (resources map[string][]string, removed []string) {
	p.t.Helper()
	resources = make(map[string][]string)
	for range 2 {
		r, err := p.stream.Recv()
		if err != nil {
			p.t.Fatal(err)
		}
		for _, res := range r.GetResources() {
			resources[r.GetTypeUrl()] = append(resources[r.GetTypeUrl()], res.GetName())
		}
		removed = append(removed, r.GetRemovedResources()...)
		p.ack(r)
	}
	return resources, removed
}

// An Envoy that has pools already is told of those whose members are known, and
// keeps the others as they are, under whatever name it has their endpoints, until
// they are known too. What belongs to no pool any more goes at once.
func TestEnvoyKeepsWhatIsNotKnownYet(t *testing.T) {
	for name, llama := range map[string]string{"the same cluster": "", "a cluster of an earlier configuration": "llama/0123456789abcdef"} {
		t.Run(name, func(t *testing.T) {
			ev, obs := observed()
			obs.OnSpared = func(cluster string) { ev.add("spared %s", cluster) }
			s := serverOf(t, obs, Options{}, Options{Name: "llama"})
			conn := serve(t, s)
			first, second := serviceName(s.pools[0].cluster), serviceName(s.pools[1].cluster)
			if llama == "" {
				llama = second
			}
			publishTo(t, s.pools[0], "10.0.0.1")
			p := returning(t, conn, first, llama, "gone/0123456789abcdef")
			resources, removed := p.next()
			if got := resources[resource.ClusterType]; !slices.Equal(got, []string{"warmpath_pool"}) {
				t.Errorf("it was told of the clusters %q", got)
			}
			if !slices.Equal(removed, []string{"gone"}) {
				t.Errorf("%q were taken from it", removed)
			}
			ev.wait(t, "spared llama")

			g := publishTo(t, s.pools[1], "10.0.1.1")
			resources, removed = p.next()
			if len(removed) > 0 || !slices.Equal(resources[resource.ClusterType], []string{"llama"}) || !slices.Equal(resources[resource.EndpointType], []string{llama}) {
				t.Errorf("then it got %q and lost %q", resources, removed)
			}
			ackedNow(t, s.pools[1], g)
		})
	}
}

// What an Envoy has of a pool is kept from the protocol until the pool's first
// publication, and no longer.
func TestSparedUntilTheFirstPublication(t *testing.T) {
	s := serverOf(t, Observer{}, Options{})
	p := s.pools[0]
	for _, want := range []bool{true, false, false} {
		for url, name := range map[string]string{resource.ClusterType: p.cluster.GetName(), resource.EndpointType: serviceName(p.cluster)} {
			r := &discovery.DeltaDiscoveryRequest{TypeUrl: url, InitialResourceVersions: map[string]string{name: "1"}}
			clusters := s.spare(r)
			if spared := len(r.GetInitialResourceVersions()) == 0; spared != want || (len(clusters) == 1) != (want && url == resource.ClusterType) {
				t.Errorf("generation %d, %s: spared is %v (clusters %q), want %v", p.generation, url, spared, clusters, want)
			}
		}
		publishTo(t, p, fmt.Sprintf("10.0.0.%d", p.generation+1))
	}
}

// A change of one pool reaches an Envoy that waits for another.
func TestChangesWhileAPoolIsNotKnown(t *testing.T) {
	s := serverOf(t, Observer{}, Options{}, Options{Name: "llama"})
	conn := serve(t, s)
	publishTo(t, s.pools[0], "10.0.0.1")
	p := returning(t, conn, serviceName(s.pools[0].cluster), serviceName(s.pools[1].cluster))
	p.next()
	for _, address := range []string{"10.0.0.2", "10.0.0.3"} {
		g := publishTo(t, s.pools[0], address)
		r := p.recv(resource.EndpointType)
		if got := addresses(t, r); !slices.Equal(got, []string{address}) || len(r.GetRemovedResources()) > 0 {
			t.Errorf("endpoints %q and without %q, want %s", got, r.GetRemovedResources(), address)
		}
		p.ack(r)
		ackedNow(t, s.pools[0], g)
	}
}

// Envoy has both clusters; a control plane that comes back and knows one pool's
// members changes that one, and leaves the other as it is until it knows it too.
func TestPoolsInEnvoy(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t)
	before := serverOf(t, Observer{}, Options{}, Options{Name: "llama"})
	kill := e.control(before)
	publishTo(t, before.pools[0], "127.0.0.1")
	publishTo(t, before.pools[1], "127.0.0.2")
	e.waitReady()
	have := func(first, llama string) func() bool {
		return func() bool {
			return e.stat("cluster.warmpath_pool.membership_total") == first && e.stat("cluster.llama.membership_total") == llama
		}
	}
	eventually(t, "both pools", have("1", "1"))
	changes := e.stat("cluster.llama.membership_change")
	kill()
	after := serverOf(t, Observer{}, Options{}, Options{Name: "llama"})
	e.control(after)
	publishTo(t, after.pools[0], "127.0.0.1", "127.0.0.3")
	eventually(t, "the new members of the first", have("2", "1"))
	publishTo(t, after.pools[0], "127.0.0.1", "127.0.0.3", "127.0.0.6")
	eventually(t, "more of them", have("3", "1"))
	g := publishTo(t, after.pools[1], "127.0.0.2")
	ackedNow(t, after.pools[1], g)
	if now := e.stat("cluster.llama.membership_change"); now != changes || !have("3", "1")() {
		t.Errorf("the same members changed the other pool: %s changes, before %s", now, changes)
	}
	publishTo(t, after.pools[1], "127.0.0.2", "127.0.0.4", "127.0.0.5")
	eventually(t, "the new members of both", have("3", "3"))
	if n := e.stat("cluster_manager.cluster_removed"); n != "0" {
		t.Errorf("%s clusters were taken away", n)
	}
	if n := e.stat("cluster_manager.cluster_modified"); n != "0" {
		t.Errorf("%s clusters were made anew", n)
	}
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
