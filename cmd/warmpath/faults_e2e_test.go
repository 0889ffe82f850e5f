package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// restart starts warmpath after its end, and counts the requests that the new
// process is asked for before it has its members.
func (l *workload) restart(t *testing.T) {
	t.Helper()
	s := l.s
	if strings.Contains(s.Warmpath.Output(), "DATA RACE") {
		t.Errorf("warmpath reported a data race:\n%s", s.Warmpath.Output())
	}
	if err := s.StartWarmpath(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitRouting(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitSteering(t, s)
	n, err := s.Metric(t.Context(), "warmpath_problems_total", `problem="no_endpoints"`)
	if err != nil {
		t.Fatal(err)
	}
	l.unrouted += int(n)
}

func tell(t *testing.T, s *stack.Stack, what syscall.Signal) {
	t.Helper()
	if err := s.Warmpath.Signal(what); err != nil {
		t.Fatal(err)
	}
}

// last lets a fault go on for a time.
func last(d time.Duration) { <-time.After(d) }

// noHealth leaves the homes to the membership alone.
const noHealth = `health: {path: "", failedRequests: 0}`

// Whatever happens to warmpath while uploads and streams are in the middle, and
// whenever clients leave: every request is served, whole and once. Those that are
// not served at home are just those that Envoy had to send on by itself.
func TestFaultsOfTheRouter(t *testing.T) {
	config := prefixAware(1000)
	config.Extra = noHealth
	s := testenv.StartAsShipped(t, stack.Options{Replica: fast, Config: config, Inspect: 1})
	before := goroutines(t, s)
	for _, tc := range []struct {
		name  string
		fault func(*testing.T, *workload)
	}{
		{"killed", func(t *testing.T, l *workload) {
			for range 3 {
				l.underway(t)
				noMisses(t, s)
				s.Warmpath.Kill()
				l.more(t, 40)
				l.underway(t)
				l.restart(t)
				l.more(t, 40)
			}
		}},
		{"terminated", func(t *testing.T, l *workload) {
			for range 2 {
				l.underway(t)
				noMisses(t, s)
				tell(t, s, syscall.SIGTERM)
				l.more(t, 40)
				if err := s.Await(t.Context(), "warmpath to end", func() error {
					if !s.Warmpath.Ended() {
						return errors.New("it runs")
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if err := s.Warmpath.Stop(time.Second); err != nil {
					t.Errorf("warmpath ended with %v", err)
				}
				l.restart(t)
				l.more(t, 40)
			}
		}},
		{"frozen", func(t *testing.T, l *workload) {
			for _, n := range []int{0, 150} {
				l.underway(t)
				tell(t, s, syscall.SIGSTOP)
				l.frozen(t, n)
				l.underway(t)
				tell(t, s, syscall.SIGCONT)
				awaitSteering(t, s)
				l.more(t, 40)
			}
		}},
		{"slow", func(t *testing.T, l *workload) {
			for i := range 12 {
				l.underway(t)
				tell(t, s, syscall.SIGSTOP)
				last([]time.Duration{100, 200, 400}[i%3] * time.Millisecond)
				tell(t, s, syscall.SIGCONT)
				l.more(t, 8)
			}
		}},
	} {
		if !t.Run(tc.name, func(t *testing.T) {
			s.Replicas.ResetStats()
			l := startWorkload(t, s)
			tc.fault(t, l)
			if unsteered(t, s) == l.missed {
				t.Error("nothing happened")
			}
			l.calmed(t)
			l.settled(t, before, nil)
		}) {
			return // the next would see the end of this one's requests
		}
	}
}

// While warmpath is away Envoy's own choice keeps each tenant at one replica, and
// the tenants apart.
func TestTenantsWhileTheRouterIsAway(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0)})
	s.Warmpath.Kill()
	replicas := make(map[string]bool)
	for tenant := range 20 {
		ofTenant := make(map[string]int)
		for i := range 10 {
			body := mixed[0].body(tenant + i)
			r, err := post(t.Context(), s, "/v1/chat/completions", body,
				"x-amzn-sagemaker-prefix-aware-id", fmt.Sprintf("tenant-%d", tenant), "x-replica-status", "418")
			if err != nil {
				t.Fatal(err)
			}
			if text := readAll(t, r); r.StatusCode != 418 {
				t.Errorf("%s %.100s", r.Status, text)
			}
			ofTenant[r.Header.Get("x-replica")]++
			replicas[r.Header.Get("x-replica")] = true
		}
		if len(ofTenant) != 1 {
			t.Errorf("tenant %d is served by %v", tenant, ofTenant)
		}
	}
	if len(replicas) < 4 {
		t.Errorf("20 tenants are served by %d replicas of 7", len(replicas))
	}
}

// frozen checks what a frozen warmpath costs: nobody waits for its return, and
// once Envoy knows, nobody waits for a timeout.
func (l *workload) frozen(t *testing.T, n int) {
	t.Helper()
	l.caughtUp(t)
	if err := l.s.Await(t.Context(), "Envoy to know", func() error {
		if envoyCounter(t, l.s, "cluster.warmpath_ext_proc.membership_healthy") != 0 {
			return errors.New("Envoy finds warmpath healthy")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	l.more(t, 30) // its threads learn of it one after the other
	l.caughtUp(t)
	const timeouts = "http.llm.ext_proc.message_timeouts"
	before := envoyCounter(t, l.s, timeouts)
	l.more(t, n)
	if now := envoyCounter(t, l.s, timeouts); now != before {
		t.Errorf("%d requests waited for a timeout although Envoy knew", now-before)
	}
}

// leaving are clients that leave in each phase of a request.
var leaving = []form{
	{name: "leaves in the upload", size: 1 << 20, parts: 8, headers: teapot, patience: 150 * time.Millisecond, ends: "left"},
	{name: "leaves in the unsized upload", size: 256 << 10, parts: 4, unsized: true, headers: teapot, patience: 100 * time.Millisecond, ends: "left"},
	{name: "leaves before the headers", size: 2 << 10, headers: []string{"x-replica-delay-ms", "9000"}, patience: 150 * time.Millisecond, ends: "left"},
	{name: "leaves before the first token", size: 2 << 10, stream: true, headers: []string{"x-replica-first-token-ms", "9000"}, patience: 150 * time.Millisecond, ends: "left"},
	{name: "leaves in the stream", size: 2 << 10, stream: true, headers: streaming, patience: 500 * time.Millisecond, ends: "left"},
}

// Clients leave in each phase; the others do not notice, and nothing stays behind.
func TestClientsLeave(t *testing.T) {
	config := prefixAware(1000)
	config.Extra = noHealth
	s := testenv.Start(t, stack.Options{Replica: fast, Config: config, Inspect: 1})
	before := goroutines(t, s)
	l := startWorkload(t, s, leaving...)
	for i := range 100 {
		hangUp(t, s, []string{
			"POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-le",
			"POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nx-request-id: " + hungUp + "\r\ncontent-length: 90000\r\n\r\n{\"messages\":[",
		}[i%2])
		l.more(t, 3)
	}
	l.settled(t, before, nil)
}

// hangUp sends the beginning of a request and resets the connection.
func hangUp(t *testing.T, s *stack.Stack, text string) {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, text); err != nil {
		t.Error(err)
	}
	if err := connection.(*net.TCPConn).SetLinger(0); err != nil {
		t.Error(err)
	}
}

// Replicas that fail break the requests that they fail, in the way that is told
// of each, and no other.
func TestFaultsOfReplicas(t *testing.T) {
	config := prefixAware(1000)
	config.Extra = quickHealth
	s := testenv.Start(t, stack.Options{Replica: fast, Config: config, Inspect: 1})
	before := goroutines(t, s)
	reset := func(when string) []string {
		return []string{"x-replica-reset", when, "x-replica-tokens", "4", "x-replica-token-ms", "100"}
	}
	dead := s.Replicas.Addresses()[1:3]
	for _, tc := range []struct {
		name    string
		forms   []form
		fault   func(*testing.T, *workload)
		excused func(*sent) bool
	}{
		{name: "reset before the response", forms: []form{
			// The two other choices of the decision are tried too.
			{name: "reset", size: 2 << 10, headers: reset("before"), ends: "503", attempts: 3},
			{name: "reset stream", size: 2 << 10, stream: true, headers: reset("before"), ends: "503", attempts: 3},
			{name: "reset upload", size: 1 << 20, parts: 4, headers: reset("before"), ends: "503", attempts: 3},
		}},
		{name: "reset in the response", forms: []form{
			// 502 when it breaks off while warmpath has the response's headers.
			{name: "reset", size: 2 << 10, headers: reset("mid"), ends: "cut 502"},
			{name: "reset stream", size: 2 << 10, stream: true, headers: reset("mid"), ends: "cut 502"},
		}},
		{name: "hanging", forms: []form{
			{name: "hanging", size: 2 << 10, headers: []string{"x-replica-delay-ms", "1500"}, ends: "200"},
			{name: "given up", size: 2 << 10, headers: []string{"x-replica-hold", "1"}, patience: time.Second, ends: "left"},
		}},
		{name: "unavailable", forms: []form{
			{name: "unavailable", size: 2 << 10, headers: []string{"x-replica-status", "503"}, ends: "503"},
			{name: "unavailable", size: 1 << 20, headers: []string{"x-replica-status", "503"}, ends: "503"},
		}},
		{name: "flapping", fault: flap},
		{name: "stopped", fault: func(t *testing.T, l *workload) {
			for _, address := range dead {
				l.underway(t)
				l.more(t, 40)
				if err := s.Replicas.Stop(address); err != nil {
					t.Fatal(err)
				}
			}
			l.more(t, 100)
		}, excused: func(q *sent) bool { return q.reached(s, dead) }},
	} {
		if !t.Run(tc.name, func(t *testing.T) {
			s.Replicas.ResetStats()
			l := startWorkload(t, s, tc.forms...)
			l.roaming = true // what is unhealthy has no keys
			if tc.fault != nil {
				tc.fault(t, l)
			}
			l.settled(t, before, tc.excused)
		}) {
			return
		}
	}
}

// reached reports whether one of the replicas had begun to serve the request.
func (q *sent) reached(s *stack.Stack, addresses []string) bool {
	for _, address := range addresses {
		for _, record := range s.Replicas.Replica(address).Requests() {
			if record.RequestID == fmt.Sprintf("load-%d", q.n) {
				return true
			}
		}
	}
	return false
}

// flap takes two endpoints out of the membership and others back in, faster than
// their streams end.
func flap(t *testing.T, l *workload) {
	t.Helper()
	all := stack.Endpoints(l.s.Replicas.Addresses()...)
	for i := range 30 {
		var some []fleet.Endpoint
		for j, e := range all {
			if i%5 == 4 || j != i%len(all) && j != (3*i+1)%len(all) {
				some = append(some, e)
			}
		}
		if err := l.s.WriteEndpoints(some); err != nil {
			t.Fatal(err)
		}
		last(150 * time.Millisecond)
	}
}
