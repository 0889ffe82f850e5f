package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
	"github.com/warmpath/warmpath/internal/testenv/nameserver"
)

// silent is a source of a pool's membership that is not there while warmpath starts
// again.
type silent struct {
	membership string // the field of warmpath.yaml
	silence    func()
	speak      func(ctx context.Context, s *stack.Stack, addresses []string) error
}

func namesOf(server *nameserver.Server) silent {
	return silent{
		membership: fmt.Sprintf("dns: {name: _http._tcp.llama.test., type: SRV, interval: 100ms, server: %q}", server.Address),
		silence:    func() { server.SetFault(nameserver.Fails) },
		speak: func(_ context.Context, _ *stack.Stack, addresses []string) error {
			var records []net.SRV
			for i, a := range addresses {
				ip := netip.MustParseAddrPort(a)
				name := fmt.Sprintf("gpu-%d.test", i)
				server.SetAddresses(name, ip.Addr())
				records = append(records, net.SRV{Target: name + ".", Port: ip.Port()})
			}
			server.SetService("_http._tcp.llama.test", records...)
			server.SetFault(nameserver.None)
			return nil
		},
	}
}

func overHTTP() silent {
	return silent{membership: "api: {}", silence: func() {}, speak: func(ctx context.Context, s *stack.Stack, addresses []string) error {
		return putTo(ctx, s, "/pools/llama/membership", addresses)
	}}
}

// putTo gives a pool its membership.
func putTo(ctx context.Context, s *stack.Stack, path string, addresses []string) error {
	text := stack.EndpointsText(stack.Endpoints(addresses...))
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, s.AdminURL()+path, strings.NewReader(text))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("PUT %s: %s", path, response.Status)
	}
	return nil
}

// Envoy runs, and warmpath starts again while a pool's source says nothing: the other
// pool changes at once, this one is served by the endpoints that Envoy has from
// before, and its membership is taken over when it comes. No request is lost.
func TestRestartWhileAPoolIsNotKnown(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]silent{"name server": namesOf(nameserver.Start(t)), "over HTTP": overHTTP()} {
		t.Run(name, func(t *testing.T) {
			s := startTwoPools(t, source)
			all := s.Replicas.Addresses()
			first, llama := all[:3], all[3:]
			servedBy(t, s, llama[:2])
			tr := startTraffic(t, s, 2)
			s.Warmpath.Kill()
			source.silence()
			if err := s.StartWarmpath(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := putTo(t.Context(), s, "/membership", first[:2]); err != nil {
				t.Fatal(err)
			}
			awaitPools(t, s, llama[:2])
			servedBy(t, s, llama[:2])

			begin := time.Now()
			if err := putTo(t.Context(), s, "/membership", first); err != nil {
				t.Fatal(err)
			}
			awaitEnvoyKnows(t, s, 3)
			if took := time.Since(begin); took > time.Second {
				t.Errorf("the other pool's change took %s", took)
			}
			servedBy(t, s, llama[:2])

			if err := source.speak(t.Context(), s, llama[1:]); err != nil {
				t.Fatal(err)
			}
			awaitLlama(t, s, llama[1:])
			servedBy(t, s, llama[1:])
			tr.more(t, s, 30)
			tr.end()
			noMisses(t, s)
			atRest(t, s)
		})
	}
}

// startTwoPools starts seven replicas: the default pool has the first two, and llama
// the fourth and fifth.
func startTwoPools(t *testing.T, source silent) *stack.Stack {
	t.Helper()
	config := prefixAware(0)
	config.Extra = noHealth + fmt.Sprintf(`
pools:
- name: llama
  models: [llama]
  routingConfig: {routingStrategy: RANDOM}
  membership: {%s}
  health: {path: "", failedRequests: 0}
`, source.membership)
	s := testenv.Start(t, stack.Options{
		Replica: fast, Replicas: 7, Config: config,
		Membership: func([]string) (string, error) { return "api: {}", nil },
		Started: func(ctx context.Context, s *stack.Stack) error {
			all := s.Replicas.Addresses()
			return errors.Join(putTo(ctx, s, "/membership", all), source.speak(ctx, s, all[3:5]))
		},
	})
	if err := putTo(t.Context(), s, "/membership", s.Replicas.Addresses()[:2]); err != nil {
		t.Fatal(err)
	}
	awaitEnvoyKnows(t, s, 2)
	awaitLlama(t, s, s.Replicas.Addresses()[3:5])
	awaitPools(t, s, s.Replicas.Addresses()[3:5])
	return s
}

// awaitPools waits until Envoy asks warmpath, which names the pool.
func awaitPools(t *testing.T, s *stack.Stack, want []string) {
	t.Helper()
	if err := s.Await(t.Context(), "warmpath to serve", func() error {
		serving, err := s.Serving(t.Context())
		if err == nil && !serving {
			err = errors.New("it says that it does not")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	awaitSteering(t, s)
	if err := s.Await(t.Context(), "Envoy to ask warmpath", func() error {
		host, err := served(t.Context(), s, "/v1/chat/completions", bodyFor("llama", 0))
		if err == nil && !slices.Contains(want, host) {
			err = fmt.Errorf("served by %s, want one of %v", host, want)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// servedBy fails the test unless the requests for llama have just those hosts, all of
// them or some.
func servedBy(t *testing.T, s *stack.Stack, want []string) {
	t.Helper()
	for i := range 20 {
		host, err := served(t.Context(), s, "/v1/chat/completions", bodyFor("llama", i))
		if err != nil || !slices.Contains(want, host) {
			t.Errorf("served by %s (%v), want one of %v", host, err, want)
		}
	}
}

// awaitLlama waits until llama has its endpoints, in Envoy too.
func awaitLlama(t *testing.T, s *stack.Stack, want []string) {
	t.Helper()
	if err := s.Await(t.Context(), "llama to have its endpoints", func() error {
		status, err := s.Status(t.Context())
		if err != nil {
			return err
		}
		if healthyOf(status.Pools[0].Endpoints) != len(want) {
			return fmt.Errorf("endpoints %+v", status.Pools[0].Endpoints)
		}
		n, err := s.EnvoyCounter(t.Context(), "cluster.warmpath_llama.membership_total")
		if err == nil && n != len(want) {
			err = fmt.Errorf("Envoy has %d endpoints, want %d", n, len(want))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// healthyOf counts the endpoints that the router may choose.
func healthyOf(endpoints []stack.EndpointStatus) (n int) {
	for _, e := range endpoints {
		if e.State == "healthy" {
			n++
		}
	}
	return n
}
