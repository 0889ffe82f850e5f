package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"syscall"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// routers are two warmpath processes behind one Envoy.
type routers struct {
	*stack.Stack // with Envoy, and the process that Envoy's configuration names first
	second       *stack.Stack
}

// startRouters starts them. How Envoy is told of the second is what beside says,
// with the place of an address in it.
func startRouters(t *testing.T, beside string) *routers {
	t.Helper()
	config := prefixAware(1000)
	config.Extra = quickHealth + "\nrouters: 2"
	second := testenv.Start(t, stack.Options{Replica: fast, Config: config, WithoutEnvoy: true})
	first := testenv.Start(t, stack.Options{
		Shared: second.Replicas, Config: config,
		Bootstrap: testenv.InOrder(
			alsoAt(t, envoy.ExtProcCluster, beside, second.ExtProc()),
			alsoAt(t, envoy.XDSCluster, beside, second.XDS()),
			testenv.Replace(t, "name: warmpath_xds\n    type: STRICT_DNS", `name: warmpath_xds
    type: STRICT_DNS
    health_checks: [{timeout: 1s, interval: 0.5s, no_traffic_interval: 0.5s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
    common_lb_config: {healthy_panic_threshold: {value: 0}}`),
		),
	})
	r := &routers{Stack: first, second: second}
	r.bothHealthy(t)
	return r
}

// Two ways to name another process in a cluster of Envoy's configuration.
const (
	sideBySide = "        - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n"
	inReserve  = "      - priority: 1\n        lb_endpoints:\n" + sideBySide
)

// alsoAt is a change of Envoy's configuration that names another address in a cluster.
func alsoAt(t *testing.T, cluster, form, address string) func([]byte) ([]byte, error) {
	return func(config []byte) ([]byte, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		head := fmt.Appendf(nil, "cluster_name: %s\n      endpoints:\n      - lb_endpoints:\n", cluster)
		before, rest, ok := bytes.Cut(config, head)
		own, after, ended := bytes.Cut(rest, []byte("\n"))
		if !ok || !ended {
			t.Errorf("no endpoints of %s in Envoy's configuration", cluster)
		}
		return bytes.Join([][]byte{before, head, own, []byte("\n"), fmt.Appendf(nil, form, host, port), after}, nil), nil
	}
}

// bothHealthy waits until Envoy finds both processes healthy.
func (r *routers) bothHealthy(t *testing.T) {
	t.Helper()
	if err := r.Await(t.Context(), "two healthy routers", func() error {
		n, err := r.EnvoyCounter(t.Context(), "cluster.warmpath_ext_proc.membership_healthy")
		if err == nil && n != 2 {
			err = fmt.Errorf("Envoy finds %d healthy", n)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// becomes gives both the same membership, one after the other.
func (r *routers) becomes(t *testing.T, endpoints []fleet.Endpoint) {
	t.Helper()
	for _, s := range []*stack.Stack{r.Stack, r.second} {
		if err := s.WriteEndpoints(endpoints); err != nil {
			t.Fatal(err)
		}
	}
	taken(t, r.Stack, endpoints)
	taken(t, r.second, endpoints)
	envoyHas(t, r.Stack, len(endpoints))
}

// sum is a metric of both.
func (r *routers) sum(t *testing.T, name string) float64 {
	t.Helper()
	return metric(t, r.Stack, name) + metric(t, r.second, name)
}

// agree waits until the counts of both together are the replicas' own.
func (r *routers) agree(t *testing.T) {
	t.Helper()
	if err := r.Await(t.Context(), "counts equal to the replicas' truth", func() error {
		counts, truth := make(map[string]int64), make(map[string]int64)
		for _, s := range []*stack.Stack{r.Stack, r.second} {
			status, err := s.Status(t.Context())
			if err != nil {
				return err
			}
			for address, n := range status.Outstanding() {
				counts[address] += n
			}
		}
		for _, one := range r.Replicas.Stats() {
			if one.Outstanding != 0 {
				truth[one.Replica] = one.Outstanding
			}
		}
		if !maps.Equal(counts, truth) {
			return fmt.Errorf("warmpath counts %v, the replicas %v", counts, truth)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// Two processes are restarted one after the other while requests run. The other one
// decides meanwhile, and it tells Envoy of the members.
func TestTwoRoutersRestartedOneByOne(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]string{"side by side": sideBySide, "one in reserve": inReserve} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRouters(t, beside)
			all := stack.Endpoints(r.Replicas.Addresses()...)
			l := startSteadyLoad(t, r.Stack)
			l.more(t, 30)
			if n := metric(t, r.second, "warmpath_decisions_total"); (n == 0) != (beside == inReserve) {
				t.Errorf("the second process has decided %v times", n)
			}
			for i, s := range []*stack.Stack{r.second, r.Stack} {
				l.underway(t)
				missed := metric(t, s, "warmpath_override_missed_total")
				if err := s.Warmpath.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				if err := r.Await(t.Context(), "warmpath to end", func() error {
					if !s.Warmpath.Ended() {
						return errors.New("it runs")
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				l.more(t, 20)
				other := []*stack.Stack{r.Stack, r.second}[i]
				becomesAlone(t, r, other, all[:5+i]) // the control plane is the other's too
				if err := s.WriteEndpoints(all[:5+i]); err != nil {
					t.Fatal(err)
				}
				if err := s.StartWarmpath(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := s.AwaitRouting(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.bothHealthy(t)
				l.more(t, 20)
				if missed != 0 {
					t.Errorf("%v requests went elsewhere than decided", missed)
				}
			}
			r.becomes(t, all)
			l.more(t, 20)
			l.end()
			t.Logf("%d requests; Envoy sent on %d by itself; %v went elsewhere than decided; this Envoy is told by %v and %v",
				l.ended(), unsteered(t, r.Stack)-l.missed, r.sum(t, "warmpath_override_missed_total"),
				metric(t, r.Stack, "warmpath_xds_envoys"), metric(t, r.second, "warmpath_xds_envoys"))
			if n := unsteered(t, r.Stack) - l.missed; n > 0 {
				t.Errorf("Envoy sent on %d requests by itself", n)
			}
			l.whole(t, nil)
			open, _ := holdOpen(t, r.Stack, mixed[0].streamed(0), 8)
			r.agree(t)
			open.close()
			atRest(t, r.Stack)
			atRest(t, r.second)
			envoyAtRest(t, r.Stack)
		})
	}
}

// becomesAlone changes the membership while only one process runs.
func becomesAlone(t *testing.T, r *routers, s *stack.Stack, endpoints []fleet.Endpoint) {
	t.Helper()
	if err := s.WriteEndpoints(endpoints); err != nil {
		t.Fatal(err)
	}
	taken(t, s, endpoints)
	envoyHas(t, r.Stack, len(endpoints))
}
