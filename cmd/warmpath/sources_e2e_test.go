package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
	"github.com/warmpath/warmpath/internal/testenv/nameserver"
)

// lives has endpoints come, go and flap through a source while requests run: none
// is lost, none goes elsewhere than decided, and what leaves finishes first. At the
// end all are members.
func lives(t *testing.T, s *stack.Stack, set func(addresses ...string)) {
	t.Helper()
	all := s.Replicas.Addresses()
	tr := startTraffic(t, s, 3)
	for _, n := range []int{3, 6, 1} {
		set(all[:n]...)
		awaitEnvoyKnows(t, s, n)
		tr.more(t, s, 30)
	}
	for i := range 20 {
		set(all[i%3 : 4+i%4]...)
		tr.more(t, s, 5)
	}
	set(all...)
	awaitEnvoyKnows(t, s, 7)
	tr.more(t, s, 30)
	finishesItsStreams(t, s, set)
	tr.end()
}

func awaitEnvoyKnows(t *testing.T, s *stack.Stack, n int) {
	t.Helper()
	if err := s.Await(t.Context(), "Envoy to follow", func() error { return s.EnvoyKnows(t.Context(), n) }); err != nil {
		t.Fatal(err)
	}
}

// finishesItsStreams removes an endpoint that has a stream, which is not cut, and
// adds it again.
func finishesItsStreams(t *testing.T, s *stack.Stack, set func(addresses ...string)) {
	t.Helper()
	all := s.Replicas.Addresses()
	open, counts := holdOpen(t, s, chat(strings.Repeat("Stream on a leaving endpoint. ", 60), "q", true), 1)
	var home string
	for address := range counts {
		home = address
	}
	set(slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == home })...)
	if err := s.Await(t.Context(), "the endpoint to drain", func() error {
		status, err := s.Status(t.Context())
		if err != nil || len(status.Membership.Leaving) == 1 {
			return err
		}
		return fmt.Errorf("leaving %v", status.Membership.Leaving)
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.EnvoyKnows(t.Context(), 7); err != nil {
		t.Errorf("while it drains: %v", err)
	}
	s.Replicas.Release()
	if text := readAll(t, open.responses[0]); !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("a stream was cut: it ends %q", text[max(0, len(text)-60):])
	}
	awaitEnvoyKnows(t, s, 6)
	set(all...)
	awaitEnvoyKnows(t, s, 7)
}

// saysAndKeeps makes a source say something bad while requests run: /status and
// the metric tell, and everything goes on.
func saysAndKeeps(t *testing.T, s *stack.Stack, what, want string, bad func()) {
	t.Helper()
	before := metric(t, s, "warmpath_membership_errors_total", `pool="default"`)
	bad()
	if err := s.Await(t.Context(), what+" to be told", func() error {
		status, err := s.Status(t.Context())
		if err != nil {
			return err
		}
		if after := metric(t, s, "warmpath_membership_errors_total", `pool="default"`); !strings.Contains(status.Membership.Error, want) || after <= before {
			return fmt.Errorf("/status says %q, want %q; %v errors, before %v", status.Membership.Error, want, after, before)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	for i := range 10 {
		if _, err := served(t.Context(), s, "/v1/chat/completions", chat(strings.Repeat(fmt.Sprintf("After %s %d. ", what, i), 100), "q", false)); err != nil {
			t.Errorf("after %s: %v", what, err)
		}
	}
	if err := s.EnvoyKnows(t.Context(), 7); err != nil {
		t.Errorf("after %s: %v", what, err)
	}
}

func TestMembershipFromDNS(t *testing.T) {
	t.Parallel()
	server := nameserver.Start(t)
	set := func(addresses ...string) {
		var list []netip.Addr
		for _, a := range addresses {
			list = append(list, netip.MustParseAddrPort(a).Addr())
		}
		server.SetAddresses("gpus.test", list...)
	}
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0), Membership: func(addresses []string) (string, error) {
		set(addresses...)
		return fmt.Sprintf("dns: {name: gpus.test., port: %d, interval: 100ms, server: %q}", netip.MustParseAddrPort(addresses[0]).Port(), server.Address), nil
	}})
	lives(t, s, set)
	for _, c := range []struct {
		what, want string
		fault      nameserver.Fault
	}{
		{"SERVFAIL", "server misbehaving", nameserver.Fails},
		{"NXDOMAIN", "no such name", nameserver.Unknown},
		{"a cut answer", "malformed answer", nameserver.Cut},
		{"REFUSED", "server misbehaving", nameserver.Refuses},
	} {
		saysAndKeeps(t, s, c.what, c.want, func() { server.SetFault(c.fault) })
	}
	server.SetFault(nameserver.None)
	saysAndKeeps(t, s, "an empty answer", "no such name, or no records", func() { set() })
	set(s.Replicas.Addresses()[:5]...)
	awaitEnvoyKnows(t, s, 5)
	if status, err := s.Status(t.Context()); err != nil || status.Membership.Error != "" {
		t.Errorf("after a good answer: %q, %v", status.Membership.Error, err)
	}
	noMisses(t, s)
	atRest(t, s)
}

// The records of SRV say which endpoints are the reserve.
func TestServicesFromDNS(t *testing.T) {
	t.Parallel()
	server := nameserver.Start(t)
	record := func(i int, address string, priority uint16) net.SRV {
		ip := netip.MustParseAddrPort(address)
		name := fmt.Sprintf("gpu-%d.test", i)
		server.SetAddresses(name, ip.Addr())
		return net.SRV{Target: name + ".", Port: ip.Port(), Priority: priority, Weight: 50}
	}
	set := func(addresses []string, reserveFrom int) {
		var records []net.SRV
		for i, a := range addresses {
			records = append(records, record(i, a, map[bool]uint16{false: 10, true: 20}[i >= reserveFrom]))
		}
		server.SetService("_http._tcp.gpus.test", records...)
	}
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0), Membership: func(addresses []string) (string, error) {
		set(addresses, 4)
		return fmt.Sprintf("dns: {name: _http._tcp.gpus.test., type: SRV, interval: 100ms, server: %q}", server.Address), nil
	}})
	all := s.Replicas.Addresses()
	used := func() (list []string) {
		for i := range 40 {
			host, err := served(t.Context(), s, "/v1/chat/completions", chat(strings.Repeat(fmt.Sprintf("Prefix %d. ", i), 120), "q", false))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(list, host) {
				list = append(list, host)
			}
		}
		slices.Sort(list)
		return list
	}
	if got := used(); !slices.Equal(got, all[:4]) {
		t.Errorf("served by %v, want the first four of %v", got, all)
	}
	set(all[4:], 7)
	awaitEnvoyKnows(t, s, 3)
	if got := used(); !slices.Equal(got, all[4:]) {
		t.Errorf("served by %v, want the last three of %v", got, all)
	}
	noMisses(t, s)
	atRest(t, s)
}

// ask sends a request to warmpath's membership and what follows.
func ask(ctx context.Context, s *stack.Stack, method, rest, body string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.AdminURL()+"/membership"+rest, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func give(ctx context.Context, s *stack.Stack, method, rest, body string) error {
	code, text, err := ask(ctx, s, method, rest, body)
	if err == nil && code != http.StatusNoContent {
		err = fmt.Errorf("%s %s: %d %s", method, rest, code, text)
	}
	return err
}

func TestMembershipOverHTTP(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{
		Replica: fast, Config: prefixAware(0),
		Membership: func([]string) (string, error) { return "api: {stateFile: state.json}", nil },
		Started: func(ctx context.Context, s *stack.Stack) error {
			if serving, err := s.Serving(ctx); err != nil || serving {
				return errors.Join(err, fmt.Errorf("serving %t without a membership", serving))
			}
			return give(ctx, s, http.MethodPut, "", stack.EndpointsText(stack.Endpoints(s.Replicas.Addresses()...)))
		},
	})
	all := s.Replicas.Addresses()
	must := func(method, rest, body string) {
		t.Helper()
		if err := give(t.Context(), s, method, rest, body); err != nil {
			t.Fatal(err)
		}
	}
	lives(t, s, func(addresses ...string) {
		must(http.MethodPut, "", stack.EndpointsText(stack.Endpoints(addresses...)))
	})

	// One endpoint at a time.
	tr := startTraffic(t, s, 3)
	must(http.MethodPost, "/drain?address="+all[2], "")
	awaitEndpoint(t, s, all[2], fleet.Draining)
	before := s.Replicas.Replica(all[2]).Stats().Started
	tr.more(t, s, 60)
	if after := s.Replicas.Replica(all[2]).Stats().Started; after != before {
		t.Errorf("a draining endpoint got %d new requests", after-before)
	}
	must(http.MethodDelete, "/endpoints?address="+all[2], "")
	awaitEnvoyKnows(t, s, 6)
	must(http.MethodPost, "/drain?address="+all[3], "")
	must(http.MethodPost, "/undrain?address="+all[3], "")
	must(http.MethodPost, "/endpoints", fmt.Sprintf("{address: %q, weight: 1}", all[2]))
	awaitEnvoyKnows(t, s, 7)
	awaitEndpoint(t, s, all[3], fleet.Healthy)
	tr.more(t, s, 50)
	tr.end()

	for what, c := range map[string]struct{ body, want string }{
		"no YAML":      {"endpoints: [", "not YAML"},
		"a bad entry":  {stack.EndpointsText(stack.Endpoints(all[0])) + "- {address: gpu-1:8000}\n", "gpu-1:8000"},
		"another key":  {"endpoint: []", "endpoint"},
		"nothing":      {"", "empty"},
		"a large body": {"endpoints: [" + strings.Repeat(" ", 16<<20) + "]", "16777216"},
	} {
		saysAndKeeps(t, s, what, c.want, func() {
			if code, text, err := ask(t.Context(), s, http.MethodPut, "", c.body); err != nil || code < 400 || code > 499 {
				t.Errorf("%s: %d %s, %v", what, code, text, err)
			}
		})
	}
	noMisses(t, s)
	atRest(t, s)
	restartKeepsTheMembership(t, s)
}

func awaitEndpoint(t *testing.T, s *stack.Stack, address string, state fleet.State) {
	t.Helper()
	if err := s.Await(t.Context(), address+" to be "+state.String(), func() error {
		status, err := s.Status(t.Context())
		if err != nil || slices.ContainsFunc(status.Endpoints, func(e stack.EndpointStatus) bool { return e.Address == address && e.State == state.String() }) {
			return err
		}
		return fmt.Errorf("endpoints %+v", status.Endpoints)
	}); err != nil {
		t.Fatal(err)
	}
}

// restartKeepsTheMembership starts warmpath again, which has five endpoints then as
// before, without anybody giving them.
func restartKeepsTheMembership(t *testing.T, s *stack.Stack) {
	t.Helper()
	five := stack.Endpoints(s.Replicas.Addresses()[:5]...)
	if err := give(t.Context(), s, http.MethodPut, "", stack.EndpointsText(five)); err != nil {
		t.Fatal(err)
	}
	awaitEnvoyKnows(t, s, 5)
	tr := startTraffic(t, s, 2)
	if err := s.Warmpath.Stop(15 * time.Second); err != nil {
		t.Fatal(err)
	}
	tr.more(t, s, 20)
	if err := s.StartWarmpath(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitRouting(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr.more(t, s, 50)
	tr.end()
	if status, err := s.Status(t.Context()); err != nil || len(status.Endpoints) != 5 {
		t.Errorf("after the restart: %+v, %v", status.Endpoints, err)
	}
	if err := s.EnvoyKnows(t.Context(), 5); err != nil {
		t.Error(err)
	}
	noMisses(t, s)
	atRest(t, s)
}
