package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// slowUploads are clients that send their headers and then, a byte at a time, a
// body that they say is as long as claimed.
type slowUploads []net.Conn

func startSlowUploads(t *testing.T, s *stack.Stack, n, claimed int) slowUploads {
	t.Helper()
	var all slowUploads
	for range n {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		all = append(all, c)
		if _, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n", claimed); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// say sends a byte of each.
func (all slowUploads) say(t *testing.T, b byte) {
	t.Helper()
	for _, c := range all {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
}

// awaited waits until warmpath serves n requests that hold no slot.
func awaited(t *testing.T, s *stack.Stack, n int) {
	t.Helper()
	if err := s.Await(t.Context(), "the slow uploads", func() error {
		if now := envoyCounter(t, s, "http.llm.downstream_rq_active"); now != n {
			return fmt.Errorf("Envoy has %d requests", now)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	atRest(t, s)
}

// 200 clients send a byte a second. They hold no endpoint's slot and next to no
// memory, and the others are served at home and no later than before; a client
// that says the rest of its body after three seconds is served too.
func TestSlowUploads(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0)})
	others := func() time.Duration {
		begin := time.Now()
		for i := range 40 {
			body := chat(strings.Repeat(fmt.Sprint("Not slow ", i%8, ". "), 110), "q", false)
			if got, home := mustServe(t, s, body), homesOf(t, s, "/v1/chat/completions", body)[0]; got != home {
				t.Errorf("served by %s, home is %s", got, home)
			}
		}
		return time.Since(begin)
	}
	others()
	before, memory := others(), metric(t, s, "process_resident_memory_bytes")
	body := string(chat(strings.Repeat("Slow. ", 200), "q", false))
	slow := startSlowUploads(t, s, 200, len(body))
	awaited(t, s, len(slow))
	for i := range 4 {
		slow.say(t, body[i])
		if during := others(); during > 5*before+time.Second {
			t.Errorf("40 requests took %s beside slow uploads, %s without", during, before)
		}
		last(time.Second)
	}
	atRest(t, s)
	if after := metric(t, s, "process_resident_memory_bytes"); after > memory+128<<20 { // they claim far more; the race detector alone takes half of it
		t.Errorf("%.0f MiB resident with %d slow uploads, %.0f before", after/(1<<20), len(slow), memory/(1<<20))
	}
	for i, c := range slow {
		if i%2 == 0 {
			_ = c.Close()
			continue
		}
		if _, err := io.WriteString(c, body[4:]); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 12)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 200" {
			t.Errorf("a slow upload was answered %q (%v)", answer, err)
		}
	}
	if n := metric(t, s, "warmpath_problems_total", `problem="overloaded"`); n != 0 {
		t.Errorf("%v requests found no room", n)
	}
	noMisses(t, s)
	atRest(t, s)
}

// Uploads that claim all that may be asked for make the others be routed by load:
// served, and counted. When they are gone, prompts find their homes again.
func TestUploadsThatHoldTheBudget(t *testing.T) {
	t.Parallel()
	config := prefixAware(0)
	config.Extra = "limits: {totalBodyBytes: 8388608}"
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: config})
	overloaded := func() int { return int(metric(t, s, "warmpath_problems_total", `problem="overloaded"`)) }
	slow := startSlowUploads(t, s, 4, 4<<20)
	if err := s.Await(t.Context(), "the budget to be held", func() error {
		if n := overloaded(); n != 2 { // of four, two were asked for their bodies
			return fmt.Errorf("%d found no room", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	body := chat(strings.Repeat("Is there room? ", 90), "q", false)
	home := homesOf(t, s, "/v1/chat/completions", body)[0]
	for range 10 {
		mustServe(t, s, body)
	}
	if n := overloaded(); n != 12 {
		t.Errorf("%d found no room, want 12", n)
	}
	for _, c := range slow {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Await(t.Context(), "room", func() error {
		before := overloaded()
		if got := mustServe(t, s, body); overloaded() != before {
			return fmt.Errorf("served by %s, home is %s", got, home)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if got := mustServe(t, s, body); got != home {
			t.Errorf("served by %s, home is %s", got, home)
		}
	}
	noMisses(t, s)
	atRest(t, s)
}

// 1,500 responses run at once: none is refused by a limit of Envoy's, each is
// counted, and no endpoint has more than its share.
func TestManyResponsesAtOnce(t *testing.T) {
	const clients, streams = 15, 100
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 5, Config: stack.Config{Strategy: "LEAST_OUTSTANDING_REQUESTS", Extra: noHealth}})
	ctx := t.Context()
	body := chat("one of many", "q", true)
	failed := make(chan error, clients*streams)
	var open []*http.Response
	responses := make(chan *http.Response, clients*streams)
	for range clients {
		client := clientOf(t, 2)
		for range streams {
			go func() {
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(string(body)))
				if err == nil {
					request.Header.Set("content-type", "application/json")
					request.Header.Set("x-replica-hold", "1")
					var r *http.Response
					if r, err = client.Do(request); err == nil {
						responses <- r
					}
				}
				failed <- err
			}()
		}
	}
	for range clients * streams {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
		r := <-responses
		open = append(open, r)
		if r.StatusCode != http.StatusOK {
			t.Fatalf("%s %s", r.Status, readAll(t, r))
		}
	}
	truthAgrees(t, s)
	status, err := s.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for address, n := range status.Outstanding() {
		if n != clients*streams/5 {
			t.Errorf("%s has %d of %d", address, n, clients*streams)
		}
	}
	for _, cluster := range []string{"warmpath_ext_proc", "warmpath_pool"} {
		if n := envoyCounter(t, s, "cluster."+cluster+".upstream_rq_pending_overflow"); n != 0 {
			t.Errorf("%s overflowed %d times", cluster, n)
		}
	}
	for _, r := range open {
		_ = r.Body.Close()
	}
	noMisses(t, s)
	atRest(t, s)
}
