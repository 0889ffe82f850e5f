package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

const (
	promptTokens = "warmpath_inspected_prompt_tokens_total"
	cachedTokens = "warmpath_inspected_cached_tokens_total"
	inspections  = "warmpath_inspected_responses_total"
)

// inspectedAs returns how many responses were inspected with a result.
func inspectedAs(t *testing.T, s *stack.Stack, result string) float64 {
	t.Helper()
	return metric(t, s, inspections, fmt.Sprintf("result=%q", result))
}

// allCounted waits until all requests have ended and all that is counted of them is.
func allCounted(t *testing.T, s *stack.Stack) {
	t.Helper()
	atRest(t, s)
	if err := s.Await(t.Context(), "the end of all streams", func() error {
		if n := metric(t, s, "warmpath_requests_in_flight"); n != 0 {
			return fmt.Errorf("%v are open", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// usageOf is a body of each API that asks for the usage at the end of a stream.
func usageOf(api, system, user string, stream bool) []byte {
	body := string(chat(system, user, stream))
	if api == "/v1/responses" {
		body = strings.Replace(body, `"messages":`, `"input":`, 1)
	}
	if api == "/v1/chat/completions" && stream {
		body = strings.Replace(body, "{", `{"stream_options":{"include_usage":true},`, 1)
	}
	return []byte(body)
}

// What is read of the responses is what the replicas know, to the token, of all APIs, as
// events and in one piece, over HTTP/1.1 and HTTP/2; and what warmpath expects is near.
func TestInspectionAgreesWithTheReplicas(t *testing.T) {
	s := testenv.Start(t, stack.Options{
		Replica:  replica.Params{Engine: engine.Llama70B(), TimeScale: 1000, OutputTokens: 4},
		Replicas: 4, Inspect: 1,
		Config: stack.Config{Strategy: "PREFIX_AWARE", PrefixLength: route.AutoPrefixLength, Extra: "engineMetrics: {interval: 1s}"},
	})
	clients := []*http.Client{clientOf(t, 1), clientOf(t, 2)}
	apis := []string{"/v1/chat/completions", "/v1/responses", "/v1/messages"}
	sent := 0
	for use := range 5 {
		for p := range 12 {
			system := strings.Repeat(fmt.Sprintf("Rule %d of the library. ", p), 200)
			body := usageOf(apis[p%3], system, fmt.Sprintf("question %d", use), use%2 == 0)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+apis[p%3], strings.NewReader(string(body)))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("content-type", "application/json")
			r, text, err := exchangeWith(clients[use%2], request)
			if err != nil || r.StatusCode != http.StatusOK {
				t.Fatalf("%v %v %.200s", err, r, text)
			}
			sent++
		}
	}
	allCounted(t, s)
	if n := inspectedAs(t, s, "read"); n != float64(sent) {
		t.Errorf("%v of %d responses were read", n, sent)
	}
	var prompt, cached int64
	for _, r := range s.Replicas.Replicas() {
		stats := r.Stats()
		prompt, cached = prompt+stats.PromptTokens, cached+stats.CachedTokens
		label := fmt.Sprintf("endpoint=%q", stats.Replica)
		if p, c := metric(t, s, promptTokens, label), metric(t, s, cachedTokens, label); p != float64(stats.PromptTokens) || c != float64(stats.CachedTokens) {
			t.Errorf("%s: %v of %v tokens cached, the replica says %d of %d", stats.Replica, c, p, stats.CachedTokens, stats.PromptTokens)
		}
	}
	truth := float64(cached) / float64(prompt)
	expected := metric(t, s, "warmpath_expected_cached_characters_total") / metric(t, s, "warmpath_prompt_characters_total")
	t.Logf("hit rate %.3f, expected %.3f", truth, expected)
	if truth < 0.5 || math.Abs(expected-truth) > 0.05 {
		t.Errorf("hit rate %.3f, expected %.3f", truth, expected)
	}
	if err := s.Await(t.Context(), "the engines' metrics", func() error {
		q, h := metric(t, s, "warmpath_engine_prefix_cache_queries_total"), metric(t, s, "warmpath_engine_prefix_cache_hits_total")
		if q != float64(prompt) || h != float64(cached) {
			return fmt.Errorf("%v of %v tokens cached, the replicas say %d of %d", h, q, cached, prompt)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	// Streams were sent in use 0, 2 and 4: the first of a prefix is cold.
	first := func(cache string) float64 {
		return metric(t, s, "warmpath_time_to_first_token_seconds_count", fmt.Sprintf("cache=%q", cache))
	}
	if w, c, u := first("warm"), first("cold"), first("unknown"); w != 24 || c != 12 || u != 0 {
		t.Errorf("the first token of %v warm, %v cold and %v other streams, want 24, 12 and 0", w, c, u)
	}
	noMisses(t, s)
}

// What an engine answers does not come out of the warmpath that reads it: not in the log
// at its most talkative, in spans, metrics, pages, answers to Envoy, nor in the stacks of
// a process that is made to abort while it reads.
func TestAnswersDoNotComeOut(t *testing.T) {
	const canary = "CANARY7f3a"
	collector := startCollector(t)
	spans := startTap(t, collector.address)
	var extProc *tap
	config := unjudged()
	config.OTLPEndpoint, config.Extra = spans.address, noHealth+"\nlog: {level: debug}\ndecision: {metadata: true, header: true}"
	s := testenv.Start(t, stack.Options{
		Replica: fast, Replicas: 1, Config: config, Inspect: 1,
		WarmpathEnv: []string{"GRPC_GO_LOG_SEVERITY_LEVEL=info", "GRPC_GO_LOG_VERBOSITY_LEVEL=99", "GOTRACEBACK=all", "OTEL_BSP_SCHEDULE_DELAY=20"},
		Between: func(a envoy.Addresses) (envoy.Addresses, error) {
			extProc = startTap(t, a.ExtProc)
			a.ExtProc = extProc.address
			return a, nil
		},
	})
	answers := map[string][2]string{ // content-type and answer
		"/json":   {"application/json", `{"id":"` + canary + `","choices":[{"message":{"content":"` + canary + `"}}],"usage":{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":1}}}`},
		"/events": {"text/event-stream", `data: {"choices":[{"delta":{"content":"` + canary + `"}}]}` + "\n\n: " + canary + "\n\n"},
		"/broken": {"application/json", `{"` + canary},
		"/large":  {"application/json", `{"x":"` + strings.Repeat(canary, 200_000) + `"}`},
		"/open":   {"text/event-stream", `data: {"` + canary},
	}
	released := make(chan struct{})
	server := upstream(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		a := answers[r.URL.Path]
		w.Header().Set("content-type", a[0])
		_, _ = io.WriteString(w, a[1])
		if r.URL.Path == "/open" {
			_ = http.NewResponseController(w).Flush()
			<-released
		}
	})
	instead(t, s, server)
	defer close(released)
	for path := range answers {
		r, err := post(t.Context(), s, path, chat("hello", "you", false))
		if err != nil {
			t.Fatal(err)
		}
		if path == "/open" {
			defer r.Body.Close()
			_, _ = r.Body.Read(make([]byte, 100))
			continue
		}
		if text := readAll(t, r); text != answers[path][1] {
			t.Errorf("%s: %d bytes, want %d", path, len(text), len(answers[path][1]))
		}
	}
	if err := s.Await(t.Context(), "an answer of each kind", func() error {
		for _, result := range []string{"read", "no_usage", "malformed", "too_large"} {
			if n := inspectedAs(t, s, result); n != 1 {
				return fmt.Errorf("%v answers with the result %s", n, result)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	pages := private{}.pages(t, s)
	tell(t, s, syscall.SIGQUIT)
	if err := s.Await(t.Context(), "the end", func() error {
		if !s.Warmpath.Ended() {
			return errors.New("it runs")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	heard, said := extProc.said()
	exported, _ := spans.said()
	if !strings.Contains(heard, canary) || !strings.Contains(exported, "warmpath.reason") || !strings.Contains(s.Warmpath.Output(), "goroutine ") {
		t.Error("what could not come out is not there")
	}
	for what, text := range map[string]string{"the log": s.Warmpath.Output(), "pages": pages, "spans": exported, "answers to Envoy": said} {
		if strings.Contains(text, canary[:8]) {
			t.Errorf("the engine's words are in %s", what)
		}
	}
}

// The time to the first token is that of the first text, which comes long after the
// response's headers.
func TestTimeToFirstToken(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: prefixAware(0), Inspect: 1})
	for _, ms := range []string{"400", "600"} {
		r, err := post(t.Context(), s, "/v1/responses", usageOf("/v1/responses", "You wait.", "q", true), "x-replica-first-token-ms", ms)
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, r)
	}
	allCounted(t, s)
	sum := metric(t, s, "warmpath_time_to_first_token_seconds_sum", `cache="unknown"`)
	if n := metric(t, s, "warmpath_time_to_first_token_seconds_count"); n != 2 || sum < 1 || sum > 3 {
		t.Errorf("%v responses take %v s to their first token, want 2 and a little more than 1 s", n, sum)
	}
}

// In the middle of responses that are inspected the router is killed: all come whole.
func TestRouterIsKilledWhileItInspects(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0), Inspect: 1})
	var wg sync.WaitGroup
	const streams, tokens = 12, 12
	begun := make(chan struct{}, streams)
	for i := range streams {
		wg.Go(func() {
			body := chat(strings.Repeat("Killed. ", 200), fmt.Sprint(i), true)
			r, err := post(t.Context(), s, "/v1/chat/completions", body, "x-replica-tokens", fmt.Sprint(tokens), "x-replica-token-ms", "100")
			begun <- struct{}{}
			if err != nil {
				t.Error(err)
				return
			}
			text := readAll(t, r)
			if n := strings.Count(text, `"content":" `); n != tokens || !strings.HasSuffix(text, "data: [DONE]\n\n") {
				t.Errorf("stream %d has %d tokens, want %d: %.200q", i, n, tokens, text)
			}
		})
	}
	for range streams {
		<-begun
	}
	s.Warmpath.Kill()
	wg.Wait()
}

// Clients leave in the middle of responses that are inspected: nothing stays behind.
func TestClientsLeaveWhatIsInspected(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0), Inspect: 1})
	open, _ := holdOpen(t, s, chat(strings.Repeat("Left alone. ", 100), "q", true), 20)
	truthAgrees(t, s)
	open.close()
	allCounted(t, s)
	if n := inspectedAs(t, s, "cut"); n != 20 {
		t.Errorf("%v responses were cut, want 20", n)
	}
}

// An Envoy that is not configured for it sends no body, and nothing else changes. So it
// is with an Envoy that is, once the share is 0.
func TestInspectionThatIsNotAllowed(t *testing.T) {
	const line = "              - {request_body_mode: NONE, response_header_mode: SEND, response_body_mode: STREAMED, response_trailer_mode: SEND}\n"
	s := testenv.Start(t, stack.Options{
		Replica: fast, Replicas: 3, Config: prefixAware(0), Inspect: 1, Bootstrap: testenv.Replace(t, line, ""),
	})
	for i := range 20 {
		if _, err := served(t.Context(), s, "/v1/chat/completions", chat(strings.Repeat("Not sent. ", 150), fmt.Sprint(i), i%2 == 0)); err != nil {
			t.Error(err)
		}
	}
	allCounted(t, s)
	noMisses(t, s)
	if n, all := inspectedAs(t, s, "not_sent"), metric(t, s, inspections); n != 20 || all != 20 {
		t.Errorf("of %v inspections %v have no body, want 20 of 20", all, n)
	}
}

// The share changes while requests run.
func TestInspectionIsSwitchedLive(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: prefixAware(0)})
	body := chat(strings.Repeat("Switched. ", 150), "q", false)
	for i, c := range []struct{ share, want float64 }{{0, 0}, {1, 10}, {0, 10}} {
		config := prefixAware(i + 1)
		config.Extra = fmt.Sprintf("inspection: {share: %v}", c.share)
		if err := s.SetConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil {
				t.Error(err)
			}
		}
		if err := s.Await(t.Context(), "inspections", func() error {
			if n := metric(t, s, inspections); n != c.want {
				return fmt.Errorf("%v, want %v", n, c.want)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}
