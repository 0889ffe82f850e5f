package xds

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	"github.com/warmpath/warmpath/internal/fleet"
)

func publishSet(t *testing.T, s *Server, endpoints ...fleet.Endpoint) uint64 {
	t.Helper()
	g, err := pool(s).Publish(setOf(t, endpoints...))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// waitConnected returns when the Envoy asks for endpoints, so that Acked waits
// for it.
func waitConnected(t *testing.T, s *Server) {
	t.Helper()
	eventually(t, "the Envoy subscribes", func() bool {
		st := pool(s).Status()
		return len(st.Clients) > 0 && st.Clients[0].Subscribed
	})
}

func TestEnvoyFollowsTheSet(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t)
	s := newServer(t, Observer{})
	e.control(s)
	a, b := fleet.Endpoint{Address: "10.0.0.1:8000", Weight: 3, Zone: "x"}, host("[2001:db8::1]:8000")
	publishSet(t, s, a)
	e.waitReady()
	e.waitHosts("10.0.0.1:8000 HEALTHY 3")
	waitConnected(t, s)

	// After Acked nothing is left to wait for but Envoy's threads.
	waitAcked(t, s, publishSet(t, s, a, b))
	e.waitHosts("10.0.0.1:8000 HEALTHY 3", "2001:db8::1:8000 HEALTHY 1")
	a.State, b.State = fleet.Draining, fleet.Unhealthy
	waitAcked(t, s, publishSet(t, s, a, b))
	e.waitHosts("10.0.0.1:8000 DRAINING 3", "2001:db8::1:8000 UNHEALTHY 1")
	b.State = fleet.Healthy
	waitAcked(t, s, publishSet(t, s, b))
	e.waitHosts("2001:db8::1:8000 HEALTHY 1")

	before := e.updates()
	publishSet(t, s, b) // as it is already: not sent
	waitAcked(t, s, publishSet(t, s))
	e.waitHosts()
	if st := pool(s).Status(); st.Nacks != 0 {
		t.Errorf("refused: %+v", st.LastNack)
	}
	if after := e.updates(); after != before+1 {
		t.Errorf("Envoy counts %d updates more, want 1: an equal set is not one", after-before)
	}
}

// TestChangedClusterIsLiveAtOnce changes the cluster ten times under load.
func TestChangedClusterIsLiveAtOnce(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t)
	s := newServer(t, Observer{})
	e.control(s)
	server := backend(t)
	publishSet(t, s, host(server))
	e.waitReady()
	e.waitHosts(server + " HEALTHY 1")

	stop := e.traffic()
	for i := range 10 {
		start := time.Now()
		if _, err := pool(s).Reconfigure(Options{ConnectTimeout: time.Duration(i+2) * time.Second}); err != nil {
			t.Fatal(err)
		}
		name := serviceName(pool(s).cluster)
		eventually(t, "the new cluster is active", func() bool {
			_, body, err := e.get("http://" + e.admin + "/config_dump?resource=dynamic_active_clusters")
			return err == nil && strings.Contains(body, name)
		})
		// An unchanged service name takes 15 s, init_fetch_timeout.
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("change %d took %s", i, took)
		}
		e.waitHosts(server + " HEALTHY 1")
	}
	// Faster than any Envoy can follow.
	for i := range 20 {
		reconfigure(t, s, time.Duration(i+50)*time.Second)
	}
	last := serviceName(pool(s).cluster)
	eventually(t, "the last cluster is active", func() bool {
		_, body, err := e.get("http://" + e.admin + "/config_dump?resource=dynamic_active_clusters")
		return err == nil && strings.Contains(body, last)
	})
	e.waitHosts(server + " HEALTHY 1")
	if sent, failures := stop(); sent == 0 || len(failures) > 0 {
		t.Errorf("%d requests, failed: %q", sent, failures)
	}
	eventually(t, "nothing is warming", func() bool { return e.stat("cluster_manager.warming_clusters") == "0" })
	// The members follow under the last name.
	other := backend(t)
	waitAcked(t, s, publishSet(t, s, host(other)))
	e.waitHosts(other + " HEALTHY 1")
}

// TestEnvoyRefusal sends endpoints that Envoy cannot take, past the checks that
// Publish makes.
func TestEnvoyRefusal(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t)
	ev, obs := observed()
	s := newServer(t, obs)
	e.control(s)
	publishSet(t, s, host("10.0.0.1:8000"))
	e.waitReady()
	waitConnected(t, s)
	waitAcked(t, s, 1)

	bad, err := LoadAssignment(serviceName(pool(s).cluster), setOf(t, host("10.0.0.2:8000")))
	if err != nil {
		t.Fatal(err)
	}
	bad.Endpoints[0].LbEndpoints[0].GetEndpoint().Address = &corev3.Address{Address: &corev3.Address_SocketAddress{
		SocketAddress: &corev3.SocketAddress{Address: "gpu-1.example", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8000}},
	}}
	if err := s.clients.expect(pool(s), 2, []*endpointv3.ClusterLoadAssignment{bad}); err != nil {
		t.Fatal(err)
	}
	if err := s.endpoints.UpdateResource(bad.GetClusterName(), bad); err != nil {
		t.Fatal(err)
	}
	pool(s).generation = 2
	ev.wait(t, "nack envoy "+resource.EndpointType+": malformed IP address: gpu-1.example")
	if err := behind(t, s, 2); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "gpu-1.example") {
		t.Errorf("Acked = %v, want ErrRefused with Envoy's words", err)
	}
	e.waitHosts("10.0.0.1:8000 HEALTHY 1")

	broken := proto.CloneOf(pool(s).cluster)
	broken.LoadBalancingPolicy = nil
	broken.ConnectTimeout.Seconds = -1
	if err := s.clusters.UpdateResource(broken.GetName(), broken); err != nil {
		t.Fatal(err)
	}
	ev.wait(t, "nack envoy "+resource.ClusterType)
	e.waitHosts("10.0.0.1:8000 HEALTHY 1")

	waitAcked(t, s, publishSet(t, s, host("10.0.0.3:8000")))
	e.waitHosts("10.0.0.3:8000 HEALTHY 1")
	if st := pool(s).Status(); st.Nacks != 2 {
		t.Errorf("%d refusals, want 2: each bad resource costs one", st.Nacks)
	}
}

// TestRestartNeverEmptiesThePool kills the control plane, changes the membership
// and the cluster, and brings it back before it knows any member.
func TestRestartNeverEmptiesThePool(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t)
	kept, removed := backend(t), backend(t)
	before := newServer(t, Observer{})
	kill := e.control(before)
	publishSet(t, before, host(kept), host(removed))
	e.waitReady()
	eventually(t, "two hosts", func() bool { return len(e.hosts()) == 2 })

	stop := e.traffic()
	kill()
	eventually(t, "Envoy notices", func() bool { return e.stat("control_plane.connected_state") == "0" })
	after := serverOf(t, Observer{}, Options{ConnectTimeout: 3 * time.Second})
	e.control(after)
	eventually(t, "Envoy is back", func() bool { return e.stat("control_plane.connected_state") == "1" })
	if hosts := e.hosts(); len(hosts) != 2 {
		t.Errorf("hosts %q before the first Publish, want the two from before", hosts)
	}
	start := time.Now()
	publishSet(t, after, host(kept))
	e.waitHosts(kept + " HEALTHY 1")
	t.Logf("the new membership was in use after %s", time.Since(start))
	if sent, failures := stop(); sent == 0 || len(failures) > 0 {
		t.Errorf("%d requests, failed: %q", sent, failures)
	}
}
