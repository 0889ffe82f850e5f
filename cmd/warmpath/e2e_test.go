package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// fast is a replica that answers at once.
var fast = replica.Params{Engine: engine.Llama70B(), TimeScale: 1000, OutputTokens: 4}

// chat is a chat completion with a shared system prompt.
func chat(system, user string, stream bool) []byte {
	body, err := json.Marshal(map[string]any{
		"model": "llama-70b", "stream": stream, "max_tokens": 4,
		"messages": []map[string]string{{"role": "system", "content": system}, {"role": "user", "content": user}},
	})
	if err != nil {
		panic(err)
	}
	return body
}

// post sends a body and returns the open response.
func post(ctx context.Context, s *stack.Stack, path string, body []byte, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(request)
}

// served sends a body and returns the replica that answered with 200.
func served(ctx context.Context, s *stack.Stack, path string, body []byte, headers ...string) (string, error) {
	response, err := post(ctx, s, path, body, headers...)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %.200s", response.Status, text)
	}
	return response.Header.Get("x-replica"), nil
}

func prefixAware(threshold int) stack.Config {
	return stack.Config{Strategy: "PREFIX_AWARE", PrefixLength: 1024, ConcurrencyThreshold: threshold}
}

// readAll reads a response to its end and closes it.
func readAll(t *testing.T, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Errorf("reading a response: %v", err)
	}
	return string(text)
}

// homesOf asks explain, the same code offline, where a body goes.
func homesOf(t *testing.T, s *stack.Stack, path string, body []byte, headers ...string) []string {
	t.Helper()
	args := []string{"explain", "--json", "--path", path, "--prefix-length", "1024", "--endpoints", strings.Join(s.Replicas.Addresses(), ",")}
	for i := 0; i+1 < len(headers); i += 2 {
		args = append(args, "-H", headers[i]+": "+headers[i+1])
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), append(args, "-"), bytes.NewReader(body), &out, &errs); code != 0 {
		t.Fatalf("explain: exit %d: %s", code, errs.String())
	}
	var x explanation
	if err := json.Unmarshal(out.Bytes(), &x); err != nil {
		t.Fatal(err)
	}
	return x.Homes
}

// noMisses fails the test if Envoy ever sent a request elsewhere than decided.
func noMisses(t *testing.T, s *stack.Stack) {
	t.Helper()
	if n, err := s.Metric(t.Context(), "warmpath_override_missed_total"); err != nil || n != 0 {
		t.Errorf("override missed %v times (%v), want 0", n, err)
	}
}

// atRest fails the test unless all counts return to zero.
func atRest(t *testing.T, s *stack.Stack) {
	t.Helper()
	if err := s.AwaitRest(t.Context()); err != nil {
		t.Error(err)
	}
	if leaked, refused := metric(t, s, "warmpath_leaked_total"), metric(t, s, "warmpath_refused_total"); leaked != 0 || refused != 0 {
		t.Errorf("%v slots leaked, %v requests left to Envoy", leaked, refused)
	}
}

// Every request of a prefix goes to the home that explain names, whatever its
// form, and to the replica that the decision named.
func TestPrefixAwareLandsAtTheHome(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0)})
	homes := make(map[string]int)
	for p := range 30 {
		system := strings.Repeat(fmt.Sprintf("Rule %d of the workshop. ", p), 60)
		want := homesOf(t, s, "/v1/chat/completions", chat(system, "q", false))[0]
		homes[want]++
		for u := range 6 {
			got, err := served(t.Context(), s, "/v1/chat/completions", chat(system, fmt.Sprintf("question %d", u), u%2 == 0))
			if err != nil || got != want {
				t.Errorf("prefix %d use %d: served by %s (%v), home is %s", p, u, got, err, want)
			}
		}
	}
	if len(homes) < 5 {
		t.Errorf("30 prefixes have %d homes of 7", len(homes))
	}
	noMisses(t, s)
	atRest(t, s)
}

// Strategies change by the configuration while requests run; each does what it
// promises.
func TestStrategiesSwitchLive(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 4})
	body := chat(strings.Repeat("One prefix for all. ", 80), "q", true)
	spread := func(n int) map[string]int {
		counts := make(map[string]int)
		for range n {
			got, err := served(t.Context(), s, "/v1/chat/completions", body)
			if err != nil {
				t.Fatal(err)
			}
			counts[got]++
		}
		return counts
	}
	if counts := spread(80); len(counts) != 4 {
		t.Errorf("RANDOM used %v", counts)
	}
	if err := s.SetConfig(t.Context(), prefixAware(0)); err != nil {
		t.Fatal(err)
	}
	if counts := spread(40); len(counts) != 1 {
		t.Errorf("PREFIX_AWARE used %v", counts)
	}
	if err := s.SetConfig(t.Context(), stack.Config{Strategy: "LEAST_OUTSTANDING_REQUESTS"}); err != nil {
		t.Fatal(err)
	}
	open, counts := holdOpen(t, s, body, 12)
	if len(counts) != 4 || slices.Max(slices.Collect(maps.Values(counts))) != 3 {
		t.Errorf("LEAST_OUTSTANDING_REQUESTS spread 12 held requests as %v", counts)
	}
	open.close()
	noMisses(t, s)
	atRest(t, s)
}

// held are responses that are kept open.
type held struct {
	cancel    context.CancelFunc
	responses []*http.Response
}

func (h *held) close() {
	h.cancel()
	for _, r := range h.responses {
		_ = r.Body.Close()
	}
}

// holdOpen sends n streams one after the other, which the replicas hold open,
// and returns them and how many each replica serves.
func holdOpen(t *testing.T, s *stack.Stack, body []byte, n int) (*held, map[string]int) {
	t.Helper()
	return holdOpenAt(t, s, "/v1/chat/completions", body, n)
}

func holdOpenAt(t *testing.T, s *stack.Stack, path string, body []byte, n int) (*held, map[string]int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h, counts := &held{cancel: cancel}, make(map[string]int)
	t.Cleanup(h.close)
	for i := range n {
		r, err := post(ctx, s, path, body, "x-replica-hold", "1")
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		h.responses = append(h.responses, r)
		counts[r.Header.Get("x-replica")]++
	}
	return h, counts
}

// 60 responses of one prefix are held open over 7 replicas with threshold 10:
// six replicas have exactly 10, the seventh none; the order in which they fill
// is that of the homes, in every run.
func TestOverflowFillsTheHomesInOrder(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(10)})
	body := chat(strings.Repeat("Hot prefix. ", 100), "q", true)
	homes := homesOf(t, s, "/v1/chat/completions", body)
	for run := range 2 {
		open, counts := holdOpen(t, s, body, 60)
		for rank, home := range homes {
			if want := map[bool]int{true: 10, false: 0}[rank < 6]; counts[home] != want {
				t.Errorf("run %d: home %d has %d, want %d", run, rank, counts[home], want)
			}
		}
		for i, r := range open.responses {
			if got := r.Header.Get("x-replica"); got != homes[i/10] {
				t.Errorf("run %d: request %d at %s, want home %d", run, i, got, i/10)
			}
		}
		truthAgrees(t, s)
		open.close()
		atRest(t, s)
	}
	noMisses(t, s)
}

// Concurrent requests do not exceed the threshold either: choosing and counting
// are one step.
func TestThresholdHoldsForABurst(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 4, Config: prefixAware(16)})
	body := chat(strings.Repeat("Burst prefix. ", 100), "q", true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	counts := make(chan string, 64)
	for range 64 {
		wg.Go(func() {
			r, err := post(ctx, s, "/v1/chat/completions", body, "x-replica-hold", "1")
			if err != nil {
				t.Error(err)
				return
			}
			counts <- r.Header.Get("x-replica")
			<-ctx.Done()
			_ = r.Body.Close()
		})
	}
	served := make(map[string]int)
	for range 64 {
		served[<-counts]++
	}
	for address, n := range served {
		if n != 16 {
			t.Errorf("%s got %d of a burst of 64 with threshold 16 on 4 replicas", address, n)
		}
	}
	truthAgrees(t, s)
	cancel()
	wg.Wait()
	noMisses(t, s)
	atRest(t, s)
}

// truthAgrees compares warmpath's counts with the replicas' own.
func truthAgrees(t *testing.T, s *stack.Stack) {
	t.Helper()
	if err := s.AwaitTruth(t.Context()); err != nil {
		t.Error(err)
	}
}

// Streams of a second: the counts are the replicas' own while they run, also
// when clients leave in the middle, and 0 afterwards.
func TestCountsFollowStreams(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0)})
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			ctx := t.Context()
			if i%3 == 0 { // leaves in the middle
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 400*time.Millisecond)
				defer cancel()
			}
			body := chat(strings.Repeat(fmt.Sprintf("Prefix %d. ", i%5), 150), "q", true)
			_, err := served(ctx, s, "/v1/chat/completions", body, "x-replica-tokens", "20", "x-replica-token-ms", "60")
			if i%3 != 0 && err != nil {
				t.Errorf("stream %d: %v", i, err)
			}
			if i%3 == 0 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("stream %d should have been left: %v", i, err)
			}
		})
	}
	truthAgrees(t, s)
	wg.Wait()
	truthAgrees(t, s)
	atRest(t, s)
	noMisses(t, s)
}

// Envoy's keepalive pings end no stream: a quiet response stays counted however
// long it runs. (With gRPC's own limit of a ping in five minutes the connection
// was closed after the third.)
func TestCountsOutliveKeepalivePings(t *testing.T) {
	oftener := func(config []byte) ([]byte, error) {
		if n := bytes.Count(config, []byte("interval: 10s, timeout: 5s")); n != 2 {
			t.Errorf("%d keepalive settings in Envoy's configuration, want 2", n)
		}
		return bytes.ReplaceAll(config, []byte("interval: 10s, timeout: 5s"), []byte("interval: 1s, timeout: 5s")), nil
	}
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: prefixAware(0), Bootstrap: oftener})
	open, _ := holdOpen(t, s, chat(strings.Repeat("A quiet stream. ", 80), "q", true), 3)
	start := time.Now()
	if err := s.Await(t.Context(), "six pings", func() error {
		if time.Since(start) < 6500*time.Millisecond {
			return errors.New("not yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	truthAgrees(t, s)
	for _, cluster := range []string{"warmpath_ext_proc", "warmpath_xds"} {
		stats, err := s.EnvoyAdmin(t.Context(), "/stats?filter=cluster."+cluster+".upstream_cx_destroy_remote$")
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(stats)), ": 0") {
			t.Errorf("connections were closed: %q (%v)", stats, err)
		}
	}
	open.close()
	atRest(t, s)
}

// disabledRoute adds a route, below /disabled/, that warmpath does not decide on.
// extra is one more setting of it, or empty.
func disabledRoute(t *testing.T, extra string) func([]byte) ([]byte, error) {
	route := `              - name: disabled
                match: {prefix: "/disabled/"}
`
	if extra != "" {
		route += "                " + extra + "\n"
	}
	return testenv.Replace(t, "              - name: pool\n", route+`                route:
                  cluster: warmpath_pool
                  prefix_rewrite: "/"
                  hash_policy: [{header: {header_name: x-amzn-sagemaker-prefix-aware-id}}]
                typed_per_filter_config:
                  warmpath.ext_proc:
                    "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute
                    disabled: true
              - name: pool
`)
}

// A client cannot choose its replica.
func TestClientCannotSteer(t *testing.T) {
	disabled := disabledRoute(t, "request_headers_to_remove: [x-gateway-destination-endpoint]")
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0), Bootstrap: disabled})
	body := chat(strings.Repeat("Prefix. ", 200), "q", false)
	home := homesOf(t, s, "/v1/chat/completions", body, "x-amzn-sagemaker-prefix-aware-id", "tenant-a")[0]
	// What Envoy reaches and is not of the pool: itself and this machine.
	outside := []string{strings.TrimPrefix(s.URL, "http://"), "127.0.0.1:22"}
	steer := func(path string) map[string]int {
		counts := make(map[string]int)
		for _, target := range s.Replicas.Addresses() {
			for _, value := range []string{target, target + "," + target, "169.254.169.254:80", outside[0], outside[1]} {
				// With a tenant the fallback policy has something to hash: one host
				// for all of these requests, whatever they ask for.
				got, err := served(t.Context(), s, path, body,
					"x-gateway-destination-endpoint", value, "x-amzn-sagemaker-prefix-aware-id", "tenant-a",
					"x-envoy-retry-on", "5xx", "x-envoy-max-retries", "9")
				if err != nil {
					t.Errorf("steering at %s: %v", value, err)
				}
				counts[got]++
			}
		}
		return counts
	}
	if counts := steer("/v1/chat/completions"); len(counts) != 1 || counts[home] == 0 {
		t.Errorf("steered requests went to %v, the home is %s", counts, home)
	}
	if counts := steer("/disabled/v1/chat/completions"); len(counts) > 1 {
		t.Errorf("on a route without warmpath the header chose: %v", counts)
	}
	s.Warmpath.Kill()
	if counts := steer("/v1/chat/completions"); len(counts) > 1 {
		t.Errorf("without warmpath the header chose: %v", counts)
	}
	for _, r := range s.Replicas.Replicas() {
		for _, record := range r.Requests() {
			for _, name := range record.HeaderNames {
				if name == "x-gateway-destination-endpoint" || strings.HasPrefix(name, "x-envoy-retry") || name == "x-envoy-max-retries" {
					t.Fatalf("a replica saw the header %s", name)
				}
			}
		}
	}
}
