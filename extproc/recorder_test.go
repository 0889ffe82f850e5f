package extproc

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/route"
)

// notebook is a recorder that keeps what it is told.
type notebook struct {
	none    bool // nothing is sampled
	panicIn string
	first   []uint64
	begun   []Beginning
	ended   []Outcome
}

func (n *notebook) Sampled(first uint64) (standsFor int) {
	n.strike("sampled")
	n.first = append(n.first, first)
	if n.none {
		return 0
	}
	return 3
}

func (n *notebook) Begin(b Beginning) Recording {
	n.strike("begin")
	b.Levels = slices.Clone(b.Levels)
	n.begun = append(n.begun, b)
	return n
}

func (n *notebook) End(o Outcome) {
	n.strike("end")
	n.ended = append(n.ended, o)
}

func (n *notebook) strike(where string) {
	if n.panicIn == where {
		panic("a defect in " + where)
	}
}

func recording(n *notebook) Settings {
	s := testSettings
	s.Recorder = n
	return s
}

func messagesOf(t testing.TB, lines ...string) (messages []*extprocv3.ProcessingRequest) {
	t.Helper()
	for _, line := range lines {
		m, err := parseMessage(line)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}

// outcome plays messages and prints every answer, but for the mode of the body,
// and what observers knew at the end, but for how much of the body was seen.
func outcome(t testing.TB, settings Settings, policy route.Policy, endpoints int, messages []*extprocv3.ProcessingRequest) string {
	t.Helper()
	observer := new(recorder)
	return tell(t, New(newRouter(t, policy, endpoints), settings, observer, one), observer, messages)
}

var bodyModeLine = regexp.MustCompile(`\n +body mode.*`)

// A recorder changes nothing but whether the body is sent to us: not a decision,
// not a retry, not what is observed. Nor does a defect in it.
func TestRecordingChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policy := prefixAware()
		policy.Strategy = rapid.SampledFrom([]route.Strategy{route.Random, route.LeastOutstandingRequests, route.PrefixAware}).Draw(rt, "strategy")
		endpoints := rapid.IntRange(0, 3).Draw(rt, "endpoints")
		messages := messagesOf(t, rapid.SliceOfN(rapid.SampledFrom(scriptLines), 0, 8).Draw(rt, "script")...)
		n := &notebook{none: rapid.Bool().Draw(rt, "none")}
		want := outcome(t, testSettings, policy, endpoints, messages)
		if diff := cmp.Diff(want, outcome(t, recording(n), policy, endpoints, messages)); diff != "" {
			rt.Errorf("recording makes a difference (-without +with):\n%s", diff)
		}
		if len(n.begun) != len(n.ended) || len(n.begun) > 1 || n.none && len(n.begun) > 0 {
			rt.Errorf("%d recordings begun, %d ended", len(n.begun), len(n.ended))
		}
	})
}

func TestDefectInRecorder(t *testing.T) {
	panicked := regexp.MustCompile(`(?m)^panicked.*\n|panic`)
	for _, strategy := range []route.Strategy{route.Random, route.PrefixAware} {
		policy := prefixAware()
		policy.Strategy = strategy
		messages := messagesOf(t,
			"headers :method=POST :path=/v1/chat/completions content-length=57 mode:NONE",
			`body eos {"messages":[{"role":"user","content":"Hello there"}]}`,
			"response 200 from=10.0.0.1:80 attempts=1")
		want := outcome(t, testSettings, policy, 3, messages)
		for _, where := range []string{"sampled", "begin", "end"} {
			got := outcome(t, recording(&notebook{panicIn: where}), policy, 3, messages)
			if !strings.Contains(got, "panicked") {
				t.Errorf("%s: the defect in %s was not told of", strategy, where)
			}
			if diff := cmp.Diff(want, panicked.ReplaceAllString(got, "")); diff != "" {
				t.Errorf("%s, defect in %s (-without +with):\n%s", strategy, where, diff)
			}
		}
	}
}

// The whole prompt is recorded under every policy, whatever the policy reads; the
// first level is the same, so that a sample does not depend on the policy.
func TestRecordedBeginning(t *testing.T) {
	const body = `body eos {"model":"m","prompt_cache_key":"t","messages":[{"role":"user","content":"<pad 3000>"}]}`
	headers := fmt.Sprintf("headers :method=POST :path=/v1/chat/completions content-length=%d mode:NONE", len(payloadOf(strings.TrimPrefix(body, "body eos "))))
	var want *notebook
	for _, strategy := range []route.Strategy{route.PrefixAware, route.Random, route.LeastOutstandingRequests} {
		policy := prefixAware()
		policy.Strategy = strategy
		n := new(notebook)
		outcome(t, recording(n), policy, 3, messagesOf(t, headers, body, "response 200 from=10.0.0.1:80 attempts=1"))
		if len(n.begun) != 1 || len(n.ended) != 1 {
			t.Fatalf("%s: %d recordings begun, %d ended", strategy, len(n.begun), len(n.ended))
		}
		b, o := n.begun[0], n.ended[0]
		if len(b.Levels) != 3000/256 || b.Chars != 3000 || b.StandsFor != 3 || b.Length != 3000 || b.Tenant != "t" || b.Model != "m" || !b.Generates || b.Levels[0] != n.first[0] {
			t.Errorf("%s: %+v, first %x", strategy, b, n.first)
		}
		if o.Status != 200 || o.Streamed || o.Decided.Before(o.Began) || o.Answered.Before(o.Decided) || o.Ended.Before(o.Answered) {
			t.Errorf("%s: %+v", strategy, o)
		}
		if want == nil {
			want = n
		} else if !slices.Equal(want.begun[0].Levels, b.Levels) || want.begun[0].Key != b.Key {
			t.Errorf("%s has other hashes than PREFIX_AWARE", strategy)
		}
	}
}

// What a body's mode, size and API mean for its recording.
func TestWhatIsRecorded(t *testing.T) {
	const chat = `body eos {"messages":[{"role":"user","content":"Hello there"}]}`
	for _, c := range []struct {
		name      string
		lines     []string
		recorded  bool
		generates bool
	}{
		{"as shipped", []string{"headers :path=/v1/chat/completions content-length=57 mode:NONE", chat}, true, true},
		{"buffered", []string{"headers :path=/v1/chat/completions content-length=57 mode:BUFFERED", chat}, true, true},
		{"raw bytes", []string{"headers :path=/invocations content-length=9 mode:NONE", "body eos some text"}, true, true},
		{"embeddings", []string{"headers :path=/v1/embeddings content-length=18 mode:NONE", `body eos {"input":"Hello"}`}, true, false},
		{"tokenize", []string{"headers :path=/tokenize content-length=18 mode:NONE", `body eos {"prompt":"Hello"}`}, false, false},
		{"no text", []string{"headers :path=/v1/chat/completions content-length=2 mode:NONE", `body eos {}`}, false, false},
		{"unknown length", []string{"headers :path=/v1/chat/completions mode:NONE", chat}, false, false},
		{"too large", []string{"headers :path=/v1/chat/completions content-length=5000 mode:NONE", chat}, false, false},
		{"streamed", []string{"headers :path=/v1/chat/completions content-length=57 mode:STREAMED", chat}, false, false},
		{"observed", []string{"headers observe :path=/v1/chat/completions content-length=57 mode:NONE", chat}, false, false},
	} {
		n := new(notebook)
		policy := prefixAware()
		policy.Strategy = route.Random
		outcome(t, recording(n), policy, 3, messagesOf(t, c.lines...))
		if got := len(n.begun) == 1; got != c.recorded || got && n.begun[0].Generates != c.generates {
			t.Errorf("%s: recorded %+v, want %t", c.name, n.begun, c.recorded)
		}
	}
}

func TestEventStreams(t *testing.T) {
	for mediaType, want := range map[string]bool{
		"text/event-stream": true, "Text/Event-Stream; charset=utf-8": true, "application/x-ndjson": true,
		"application/json": false, "": false,
	} {
		if got := isEventStream(mediaType); got != want {
			t.Errorf("%q: %t", mediaType, got)
		}
	}
}

// A request that is not sampled costs nothing more.
func TestAllocationsUnsampled(t *testing.T) {
	s := costServer(t)
	headers, body := buffered(t, 64<<10)
	run := func() float64 {
		return testing.AllocsPerRun(1500, func() {
			st := s.begin(t.Context())
			st.handle(headers)
			st.handle(body)
			st.end()
		})
	}
	before := run()
	settings := *s.settings.Load()
	settings.Recorder = unsampled{}
	s.SetSettings(settings)
	// The race detector makes the pool of scanners forget a quarter of them, by chance; of
	// so many runs it is near that.
	if got := run(); got > before+1 {
		t.Errorf("%v allocations instead of %v", got, before)
	}
}

type unsampled struct{}

func (unsampled) Sampled(uint64) int        { return 0 }
func (unsampled) Begin(Beginning) Recording { return nil }
