package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// Up to the limits at which Envoy itself refuses a request for its headers, none
// fails because of warmpath, which adds some: what is refused is what is refused
// on a route without warmpath.
func TestHeaderBombs(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0), Bootstrap: disabledRoute(t, "")})
	body := string(chat(strings.Repeat("Many headers. ", 90), "q", false))
	status := func(path, headers string) int {
		t.Helper()
		r, err := exchange(s, fmt.Sprintf("POST %s/v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%s\r\n%s",
			path, len(body), headers, body))
		if err != nil {
			return 431 // Envoy has cut the connection before its answer was read
		}
		if served := r.Header.Get("x-replica") != ""; served != (r.StatusCode == 200) || !served && r.StatusCode != 431 {
			t.Errorf("%d headers: status %d, served by a replica: %v", strings.Count(headers, "\n"), r.StatusCode, served)
		}
		return r.StatusCode
	}
	var bombs []string
	for _, n := range []int{80, 84, 86, 88, 90, 92, 94, 96, 97, 98, 99, 100, 101, 102} {
		var many strings.Builder
		for i := range n {
			fmt.Fprintf(&many, "x-h%d: v\r\n", i)
		}
		bombs = append(bombs, many.String())
	}
	for _, kib := range []int{50, 51, 52, 53, 56, 58, 59, 60, 62} {
		size := kib << 10
		bombs = append(bombs, "x-big: "+strings.Repeat("x", size)+"\r\n", "x-big: "+strings.Repeat("x", size+512)+"\r\n")
	}
	answered := make(map[int]int)
	for _, bomb := range bombs {
		without, with := status("/disabled", bomb), status("", bomb)
		if with != without {
			t.Errorf("%d headers in %d bytes: %d, without warmpath %d", strings.Count(bomb, "\n"), len(bomb), with, without)
		}
		answered[with]++
	}
	if answered[200] == 0 || answered[431] == 0 {
		t.Errorf("answered %v: both sides of the limits are wanted", answered)
	}
	// A repeated one, as often as Envoy takes it.
	for _, name := range []string{"x-request-id", "x-amzn-sagemaker-prefix-aware-id", "content-type", "traceparent"} {
		if got := status("", strings.Repeat(name+": one\r\n", 40)); got != 200 {
			t.Errorf("40 times %s: %d", name, got)
		}
	}
	noMisses(t, s)
	atRest(t, s)
}

// Requests that give themselves the same id, or one of 10 KB, or none, are as
// many as they are.
func TestForgedRequestIDs(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 4, Config: prefixAware(20)})
	body := chat(strings.Repeat("One id for all. ", 100), "q", true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 75 {
		id := []string{"1", strings.Repeat("9", 10_000), ""}[i%3]
		wg.Go(func() {
			r, err := post(ctx, s, "/v1/chat/completions", body, "x-request-id", id, "x-replica-hold", "1")
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = r.Body.Close() })
		})
	}
	wg.Wait()
	truthAgrees(t, s)
	status, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for address, n := range status.Outstanding() {
		if sum += n; n > 20 {
			t.Errorf("%s runs %d requests, the threshold is 20", address, n)
		}
	}
	if sum != 75 {
		t.Errorf("%d counted of 75", sum)
	}
	cancel()
	noMisses(t, s)
	atRest(t, s)
}

// endless is a body without end. It tells how much of it was taken.
type endless struct {
	done  context.Context
	taken func(int)
}

// Read implements io.Reader.
func (e endless) Read(p []byte) (int, error) {
	if err := e.done.Err(); err != nil {
		return 0, err
	}
	n := copy(p, bytes.Repeat([]byte("x"), min(len(p), 32<<10)))
	e.taken(n)
	return n, nil
}

// Bodies without end are decided at their headers, cost warmpath no memory, and
// are over when their clients leave.
func TestEndlessBodies(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0)})
	mustServe(t, s, chat("first", "q", false))
	before := metric(t, s, "process_resident_memory_bytes")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const clients, each = 6, 40 << 20 // below what a replica takes
	var wg sync.WaitGroup
	var sent [clients]int64
	enough := make(chan struct{}, clients)
	for i := range clients {
		client := clientOf(t, 1+i%2)
		wg.Go(func() {
			body := endless{ctx, func(n int) {
				if sent[i] += int64(n); sent[i] >= each {
					enough <- struct{}{}
					<-ctx.Done() // it stays, without another byte
				}
			}}
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", io.MultiReader(strings.NewReader(`{"messages":[{"content":"`), body))
			if err != nil {
				t.Error(err)
				return
			}
			if r, _, err := exchangeWith(client, request); err == nil {
				t.Errorf("answered %s", r.Status)
			}
		})
	}
	for range clients {
		<-enough
	}
	// The others do not notice.
	for i := range 20 {
		body := chat(strings.Repeat(fmt.Sprint("Meanwhile ", i, ". "), 100), "q", false)
		if got, home := mustServe(t, s, body), homesOf(t, s, "/v1/chat/completions", body)[0]; got != home {
			t.Errorf("served by %s, home is %s", got, home)
		}
	}
	if n := metric(t, s, "warmpath_problems_total", `problem="unknown_length"`); n != clients {
		t.Errorf("%v of %d were decided at their headers", n, clients)
	}
	if after := metric(t, s, "process_resident_memory_bytes"); after > before+48<<20 {
		t.Errorf("%.0f MiB resident after %d MiB of bodies, %.0f before", after/(1<<20), clients*each>>20, before/(1<<20))
	}
	cancel()
	wg.Wait()
	noMisses(t, s)
	atRest(t, s)
}

// Bodies that are made to be expensive cost neither their own request its answer
// nor the others their time.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0)})
	const size = 1 << 20
	zipped := func(text string, times int) []byte {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		for range times {
			_, _ = io.WriteString(w, text)
		}
		_ = w.Close()
		return b.Bytes()
	}
	spaces := strings.Repeat(" ", 1<<20)
	hostile := map[string]struct {
		body     []byte
		encoding string
	}{
		"deep":           {[]byte(`{"messages":` + strings.Repeat("[", size)), ""},
		"deep objects":   {[]byte(`{"messages":[{"content":` + strings.Repeat(`{"a":`, size/5)), ""},
		"many members":   {[]byte(`{` + strings.Repeat(`"a":1,`, size/6) + `"messages":[]}`), ""},
		"many messages":  {[]byte(`{"messages":[` + strings.Repeat(`{"content":""},`, size/15) + `{}]}`), ""},
		"escapes":        {[]byte(`{"messages":[{"content":"` + strings.Repeat(`\ud83d`, size/6) + `"}]}`), ""},
		"bomb":           {zipped(spaces, 48), "gzip"},
		"empty archives": {bytes.Repeat(zipped("", 1), size/24), "gzip"},
		"bomb in layers": {zipped(string(zipped(spaces, 16)), 1), "gzip, gzip"},
		"bad archive":    {append([]byte{0x1f, 0x8b, 8, 0}, bytes.Repeat([]byte{0xff}, size)...), "gzip"},
	}
	ask := func(body []byte, headers ...string) (string, time.Duration) {
		t.Helper()
		begin := time.Now()
		r, err := post(t.Context(), s, "/v1/chat/completions", body, append(headers, "x-replica-status", "418")...)
		if err != nil {
			t.Fatal(err)
		}
		if text := readAll(t, r); r.StatusCode != http.StatusTeapot {
			t.Fatalf("%s %.100s", r.Status, text)
		}
		return r.Header.Get("x-replica"), time.Since(begin)
	}
	plain := chat("x", strings.Repeat("y", size), false)
	ask(plain)
	_, usual := ask(plain)
	for name, h := range hostile {
		address, took := ask(h.body, "content-encoding", h.encoding)
		arrivedWhole(t, s, address, h.body)
		if took > 20*usual+time.Second {
			t.Errorf("%s took %s, a plain body of %d bytes %s", name, took, size, usual)
		}
	}
	if n := metric(t, s, "warmpath_problems_total", `problem="panic"`); n != 0 {
		t.Errorf("%v panics", n)
	}
	noMisses(t, s)
	atRest(t, s)
}
