package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// trio is three routers that gossip and two Envoys, which share the replicas. The
// first Envoy asks the first router, the second the others in turn.
type trio struct {
	routers [3]*stack.Stack
	links   [3]*cuttable // what the gossip of each comes through
}

func startTrio(t *testing.T, replicas int, config stack.Config) *trio {
	t.Helper()
	r := new(trio)
	key := filepath.Join(t.TempDir(), "gossip.key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var listen, reach []string
	for range r.routers {
		for _, list := range []*[]string{&listen, &reach} {
			port, err := stack.FreePort("127.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			*list = append(*list, fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	for i := range r.routers {
		r.links[i] = startCuttable(t, reach[i], listen[i])
	}
	for _, i := range []int{0, 2, 1} { // the second Envoy has to know the third router
		c := config
		c.Extra += fmt.Sprintf("gossip: {listen: %q, advertise: %q, join: [%s], keyFile: %q}\n", listen[i], reach[i], strings.Join(reach, ", "), key)
		o := stack.Options{Replica: fast, Replicas: replicas, Config: c}
		if i > 0 {
			o.Shared = r.routers[0].Replicas
		}
		o.WithoutEnvoy = i == 2
		if i == 1 {
			o.Bootstrap = r.askTheThird(t)
		}
		r.routers[i] = testenv.Start(t, o)
	}
	r.await(t, "all to hear each other", func(s stack.Status) error { return hears(s, 2) })
	return r
}

// askTheThird adds the third router to those that an Envoy asks.
func (r *trio) askTheThird(t *testing.T) func([]byte) ([]byte, error) {
	return func(config []byte) ([]byte, error) {
		host, port, err := net.SplitHostPort(r.routers[2].ExtProc())
		if err != nil {
			return nil, err
		}
		before, after, found := bytes.Cut(config, []byte("      cluster_name: warmpath_ext_proc\n      endpoints:\n      - lb_endpoints:\n"))
		if !found {
			t.Error("Envoy's configuration has no endpoints of warmpath_ext_proc")
		}
		return fmt.Appendf(nil, "%s      cluster_name: warmpath_ext_proc\n      endpoints:\n      - lb_endpoints:\n        - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n%s",
			before, host, port, after), nil
	}
}

// hears reports an error unless the router hears n others.
func hears(s stack.Status, n int) error {
	heard := 0
	for _, p := range s.Peers {
		if !p.Silent {
			heard++
		}
	}
	if heard != n {
		return fmt.Errorf("hears %d others, want %d", heard, n)
	}
	return nil
}

// await waits until all routers' states are as wanted.
func (r *trio) await(t *testing.T, what string, ok func(stack.Status) error) {
	t.Helper()
	for i, s := range r.routers {
		if s.Warmpath.Ended() {
			continue
		}
		err := s.Await(t.Context(), what, func() error {
			status, err := s.Status(t.Context())
			if err != nil {
				return err
			}
			return ok(status)
		})
		if err != nil {
			t.Fatalf("router %d: %v", i, err)
		}
	}
}

// views waits until each router knows of the requests of all.
func (r *trio) views(t *testing.T) {
	t.Helper()
	truth := make(map[string]int64)
	for _, s := range r.routers[0].Replicas.Stats() {
		truth[s.Replica] = s.Outstanding
	}
	r.await(t, "the view of all requests", func(s stack.Status) error {
		view := make(map[string]int64)
		for _, e := range s.Endpoints {
			view[e.Address] = e.Outstanding + e.Others
		}
		if !maps.Equal(view, truth) {
			return fmt.Errorf("it sees %v, the replicas have %v", view, truth)
		}
		return nil
	})
}

// envoys are the stacks by which requests come in.
func (r *trio) envoys() []*stack.Stack { return []*stack.Stack{r.routers[0], r.routers[1]} }

// All three routers send a prefix to the same home.
func TestThreeRoutersAgree(t *testing.T) {
	r := startTrio(t, 5, prefixAware(0))
	for p := range 12 {
		body := chat(strings.Repeat(fmt.Sprintf("Rule %d of the house. ", p), 80), "q", false)
		homes := make(map[string]int)
		for i := range 6 {
			home, err := served(t.Context(), r.envoys()[i%2], "/v1/chat/completions", body)
			if err != nil {
				t.Fatal(err)
			}
			homes[home]++
		}
		if len(homes) != 1 {
			t.Errorf("prefix %d has the homes %v", p, homes)
		}
	}
	for i, s := range r.routers {
		if n := metric(t, s, "warmpath_decisions_total", `reason="home"`); n < 12 {
			t.Errorf("router %d has decided %v requests", i, n)
		}
	}
}

// Requests that come one after the other, by any router, fill the homes in order up
// to the bound, as with one router.
func TestThreeRoutersFillTheHomes(t *testing.T) {
	r := startTrio(t, 4, prefixAware(4))
	body := chat(strings.Repeat("Hot prefix. ", 100), "q", true)
	homes := homesOf(t, r.routers[0], "/v1/chat/completions", body)
	for i := range 12 {
		_, counts := holdOpen(t, r.envoys()[i%2], body, 1)
		if counts[homes[i/4]] != 1 {
			t.Errorf("request %d went to %v, want home %d", i, counts, i/4)
		}
		r.views(t)
	}
}

// Under load by both Envoys the bound is exceeded only by what the others have
// started since they last told. Without gossip the home would have three times the
// bound.
func TestThreeRoutersHoldTheBound(t *testing.T) {
	const threshold, workers, rounds = 4, 12, 8
	r := startTrio(t, 4, prefixAware(threshold))
	body := chat(strings.Repeat("Hot prefix. ", 100), "q", true)
	home := homesOf(t, r.routers[0], "/v1/chat/completions", body)[0]
	var work sync.WaitGroup
	var first atomic.Int64 // requests that were the first of their worker, and ended
	for w := range workers {
		work.Go(func() {
			for round := range rounds {
				tokens := fmt.Sprint(8 + (7*w+11*round)%30) // not all at once
				_, err := served(t.Context(), r.envoys()[w%2], "/v1/chat/completions", body, "x-replica-tokens", tokens, "x-replica-token-ms", "40")
				if err != nil {
					t.Error(err)
				}
				if round == 0 {
					first.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	most, over, samples := int64(0), 0, 0
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-ticker.C:
			if first.Load() < workers {
				continue // they all began at once, when no router knew of another's
			}
			n := r.routers[0].Replicas.Replica(home).Stats().Outstanding
			most = max(most, n)
			samples++
			if n > threshold+2 {
				over++
			}
		}
	}
	t.Logf("at the home at most %d, bound %d; above %d in %d of %d samples", most, threshold, threshold+2, over, samples)
	if over*10 > samples || samples == 0 {
		t.Errorf("the home has more than %d requests in %d of %d samples", threshold+2, over, samples)
	}
}

// A router is killed with responses open: what it had counts no more within a second.
func TestThreeRoutersOneIsKilled(t *testing.T) {
	r := startTrio(t, 4, prefixAware(4))
	body := chat(strings.Repeat("Hot prefix. ", 100), "q", true)
	holdOpen(t, r.routers[0], body, 3)
	r.views(t)
	r.routers[0].Warmpath.Kill()
	killed := time.Now()
	var watch sync.WaitGroup
	for i, s := range r.routers[1:] {
		watch.Go(func() {
			late, err := countsOthers(t, s, killed)
			if t.Logf("router %d counted them for %s", i+1, late.Round(time.Millisecond)); err != nil || late > time.Second {
				t.Errorf("router %d counts the requests of a dead one after %s (%v)", i+1, late, err)
			}
		})
	}
	watch.Wait()
}

// countsOthers waits until a router counts nothing of others, and returns how long
// after a time it was last seen to.
func countsOthers(t *testing.T, s *stack.Stack, since time.Time) (late time.Duration, err error) {
	err = s.Await(t.Context(), "the counts of others to go", func() error {
		asked := time.Now()
		status, err := s.Status(t.Context())
		if err != nil {
			return err
		}
		for _, e := range status.Endpoints {
			if e.Others > 0 {
				late = asked.Sub(since)
				return fmt.Errorf("counts %d of others at %s", e.Others, e.Address)
			}
		}
		return nil
	})
	return late, err
}

// Cut off from each other the routers go on, each by itself and with the same homes,
// and find together again.
func TestThreeRoutersCutOff(t *testing.T) {
	r := startTrio(t, 4, prefixAware(4))
	prefixes, homes := make([][]byte, 8), make([]string, 8)
	check := func(when string) {
		t.Helper()
		for p := range prefixes {
			for _, envoy := range r.envoys() {
				home, err := served(t.Context(), envoy, "/v1/chat/completions", prefixes[p])
				if err != nil || homes[p] != "" && home != homes[p] {
					t.Errorf("%s: prefix %d went to %q (%v), before to %q", when, p, home, err, homes[p])
				}
				homes[p] = home
			}
		}
	}
	for p := range prefixes {
		prefixes[p] = chat(strings.Repeat(fmt.Sprintf("Prefix %d of the cut. ", p), 80), "q", false)
	}
	check("together")
	held, _ := holdOpen(t, r.routers[0], chat("Held.", "q", true), 2)
	r.views(t)
	for _, l := range r.links {
		l.cut.Store(true)
	}
	r.await(t, "silence", func(s stack.Status) error {
		for _, e := range s.Endpoints {
			if e.Others > 0 {
				return fmt.Errorf("counts %d of others at %s", e.Others, e.Address)
			}
		}
		return hears(s, 0)
	})
	check("cut off")
	for _, l := range r.links {
		l.cut.Store(false)
	}
	r.await(t, "all to hear each other again", func(s stack.Status) error { return hears(s, 2) })
	r.views(t)
	held.close()
	check("together again")
}

// Without the key nobody is heard, and with a wrong one neither.
func TestGossipNeedsTheKey(t *testing.T) {
	port, err := stack.FreePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	dir := t.TempDir()
	start := func(key byte, listen, join string, shared *stack.Stack) *stack.Stack {
		path := filepath.Join(dir, fmt.Sprint(key))
		if err := os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{key}, 16))), 0o600); err != nil {
			t.Fatal(err)
		}
		c := prefixAware(0)
		c.Extra = fmt.Sprintf("gossip: {listen: %q, join: [%s], keyFile: %q}\n", listen, join, path)
		o := stack.Options{Replica: fast, Replicas: 2, Config: c, WithoutEnvoy: true}
		if shared != nil {
			o.Shared = shared.Replicas
		}
		return testenv.Start(t, o)
	}
	first := start(1, listen, "", nil)
	port, err = stack.FreePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	second := start(2, fmt.Sprintf("127.0.0.1:%d", port), listen, first)
	if err := second.Await(t.Context(), "a refusal", func() error {
		if !strings.Contains(second.Warmpath.Output(), "none of the addresses to join answers") {
			return errors.New("nothing in the log yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*stack.Stack{first, second} {
		status, err := s.Status(t.Context())
		if err != nil || len(status.Peers) > 0 {
			t.Errorf("with different keys: %+v (%v)", status.Peers, err)
		}
	}
}
