package extproc

import (
	"fmt"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// buffered is the usual request with a body of n bytes: the two messages that
// are answered before it goes on.
func buffered(t testing.TB, n int) (headers, body *extprocv3.ProcessingRequest) {
	t.Helper()
	text := `{"model":"llama-70b","messages":[{"role":"user","content":"` + strings.Repeat("word ", n/5)
	text = text[:n-4] + `"}]}`
	headers, err := parseMessage(fmt.Sprintf("headers :method=POST :path=/v1/chat/completions content-type=application/json content-length=%d", n))
	if err != nil {
		t.Fatal(err)
	}
	body, err = parseMessage("body eos " + text)
	if err != nil {
		t.Fatal(err)
	}
	return headers, body
}

func costServer(t testing.TB) *Server {
	settings := testSettings
	settings.BodyLimit = 4 << 20
	policy := prefixAware()
	policy.PrefixLength, policy.ConcurrencyThreshold = 4096, 0
	return New(newRouter(t, policy, 7), settings, silent{}, one)
}

// A buffered request costs a fixed number of allocations: the stream's state and
// what is kept of the headers. The body's length must not matter.
func TestAllocationsOfARequest(t *testing.T) {
	// The race detector makes the pool of scanners forget some of them: a few more.
	const most = 15
	s := costServer(t)
	for _, n := range []int{4 << 10, 64 << 10, 1 << 20} {
		headers, body := buffered(t, n)
		got := testing.AllocsPerRun(100, func() {
			st := s.begin(t.Context())
			st.handle(headers)
			st.handle(body)
			st.end()
		})
		t.Logf("%d KiB: %v allocations", n>>10, got)
		if got > most {
			t.Errorf("%d KiB: %v allocations, want at most %d", n>>10, got, most)
		}
	}
}

// BenchmarkRequest is a buffered request without gRPC around it. To compare:
//
//	go test ./extproc -run xxx -bench Request -count 10 > new; benchstat old new
func BenchmarkRequest(b *testing.B) {
	for _, n := range []int{4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dKiB", n>>10), func(b *testing.B) { benchmarkRequest(b, n, false) })
	}
	b.Run("4KiB/told", func(b *testing.B) { benchmarkRequest(b, 4<<10, true) })
}

// benchmarkRequest encodes the answers as the gRPC server does. told is with the decision
// as metadata.
func benchmarkRequest(b *testing.B, n int, told bool) {
	s := costServer(b)
	settings := *s.settings.Load()
	settings.DecisionMetadata = told
	s.SetSettings(settings)
	headers, body := buffered(b, n)
	codec := s.Codec()
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		st := s.begin(b.Context())
		for _, m := range []*extprocv3.ProcessingRequest{headers, body} {
			responses, _ := st.handle(m)
			for _, r := range responses {
				if _, err := codec.Marshal(r); err != nil {
					b.Fatal(err)
				}
			}
		}
		st.end()
	}
}

// A response that is not sampled costs what it costs without inspection; of one that is,
// the parts cost nothing.
func TestAllocationsOfInspection(t *testing.T) {
	headers, body := buffered(t, 4<<10)
	response, _ := parseMessage("response 200 from=10.0.0.1:80 type=text/event-stream")
	text, _ := parseMessage(`response-body more data: {"choices":[{"delta":{"content":"Hi"}}]}<line>`)
	cost := func(share float64, random uint64, parts int) float64 {
		s := costServer(t)
		settings := *s.settings.Load()
		settings.Inspect = share
		s.SetSettings(settings)
		s.random = func() uint64 { return random }
		once := func() {
			st := s.begin(t.Context())
			for _, m := range []*extprocv3.ProcessingRequest{headers, body, response} {
				st.handle(m)
			}
			for range parts {
				st.handle(text)
			}
			st.end()
		}
		// The least of some: under the race detector pools forget at random.
		least := testing.AllocsPerRun(100, once)
		for range 9 {
			least = min(least, testing.AllocsPerRun(20, once))
		}
		return least
	}
	without, unsampled := cost(0, 1, 0), cost(0.5, 1<<63, 0)
	one, many := cost(0.5, 1<<63-1, 1), cost(0.5, 1<<63-1, 100)
	t.Logf("%v without, %v not sampled, %v sampled with one part, %v with 100", without, unsampled, one, many)
	if unsampled > without+1 { // one more: under the race detector pools forget at random
		t.Errorf("%v allocations of a response that is not sampled, %v without inspection", unsampled, without)
	}
	if many > one+1 {
		t.Errorf("99 more parts take %v allocations", many-one)
	}
}

// A request's times are in the order of what they are of, and the key's is between the
// body's and the decision's.
func TestTimesOfARequest(t *testing.T) {
	s := costServer(t)
	headers, body := buffered(t, 1<<20)
	st := s.begin(t.Context())
	st.handle(headers)
	st.handle(body)
	st.end()
	r := &st.record
	if r.Scanned.Before(r.Began) || !r.Keyed.After(r.Scanned) || r.Decided.Before(r.Keyed) {
		t.Errorf("began %v, scanned %v, keyed %v, decided %v", r.Began, r.Scanned, r.Keyed, r.Decided)
	}
}
