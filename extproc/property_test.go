package extproc

import (
	"io"
	"slices"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/route"
)

// words of a random script. Envoy sends them in an order that makes sense;
// nothing may depend on that.
var scriptLines = []string{
	"headers :method=POST :path=/v1/chat/completions content-length=64",
	"headers :method=POST :path=/v1/chat/completions content-length=60 mode:NONE",
	"headers :method=POST :path=/v1/chat/completions content-length=64 x-tenant-id=team-a mode:STREAMED",
	"headers :method=POST :path=/v1/chat/completions content-length=64 mode:FULL_DUPLEX_STREAMED",
	"headers :method=POST :path=/v1/chat/completions mode:BUFFERED_PARTIAL",
	"headers :method=POST :path=/v1/chat/completions content-length=5000 content-encoding=gzip",
	"headers eos :method=GET :path=/v1/models",
	"headers :method=GET :path=/ upgrade=websocket",
	"headers observe :method=POST :path=/invocations content-length=9",
	"headers",
	`body eos {"messages":[{"role":"user","content":"Hello"}]}`,
	`body more {"messages":[{"role":"user","content":"Hel`,
	`body eos gzip:{"messages":[{"role":"user","content":"<pad 9000>"}]}`,
	"body eos ",
	"trailers",
	"response 200 from=10.0.0.1:80 attempts=1",
	"response 200 from=10.0.0.2:80 attempts=2",
	"response 503 from=10.7.7.7:80",
	"response 413",
	"response 200 from=10.0.0.1:80 type=application/json",
	"response 200 from=10.0.0.1:80 type=text/event-stream",
	"response-body more data",
	`response-body eos {"usage":{"prompt_tokens":9}}`,
	"response-trailers",
	"unknown",
}

// Whatever comes in whatever order, and wherever a defect strikes: no panic
// gets out, no message has two answers, no request two decisions, and every
// slot comes back.
func TestAnyOrderOfMessages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policy := prefixAware()
		policy.Strategy = rapid.SampledFrom([]route.Strategy{route.Random, route.LeastOutstandingRequests, route.PrefixAware}).Draw(rt, "strategy")
		tight := testSettings
		tight.TotalBodies = rapid.SampledFrom([]int64{0, 50, 4096}).Draw(rt, "bodies")
		tight.Inspect = rapid.SampledFrom([]float64{0, 1}).Draw(rt, "inspect")
		observer := &recorder{panicIn: rapid.SampledFrom([]string{"", "", "decided", "served", "ended", "panicked"}).Draw(rt, "panic")}
		share := rapid.SampledFrom([]float64{0, 1}).Draw(rt, "share")
		server, trials := trying(t, policy, rapid.IntRange(0, 3).Draw(rt, "endpoints"), onTrial(share, prefixAware()), onTrial(share, prefixAware()), observer)
		server.SetSettings(tight)
		lines := rapid.SliceOfN(rapid.SampledFrom(scriptLines), 0, 8).Draw(rt, "script")
		messages := make([]*extprocv3.ProcessingRequest, len(lines))
		for i, line := range lines {
			m, err := parseMessage(line)
			if err != nil {
				rt.Fatal(err)
			}
			messages[i] = m
		}
		checkStream(t, rt, server, messages)
		atRest(t, server)
		if report, _ := trials.Report(); report != nil && report.Outstanding != 0 {
			rt.Errorf("the shadow has %d outstanding", report.Outstanding)
		}
		if n := count(observer.events, "decided"); n > 1 {
			rt.Errorf("%d decisions were observed", n)
		}
		if d, e := count(observer.events, "decided"), count(observer.events, "ended"); d != e {
			rt.Errorf("%d decided, %d ended", d, e)
		}
	})
}

func checkStream(t *testing.T, rt *rapid.T, server *Server, messages []*extprocv3.ProcessingRequest) {
	decisions, observed := 0, false
	var unanswered []*extprocv3.ProcessingRequest // in the order they came
	f := &fakeStream{ctx: t.Context(), messages: messages, end: io.EOF}
	f.answered = func(i int, answers []*extprocv3.ProcessingResponse) {
		observed = observed || messages[i].GetObservabilityMode()
		if messages[i].GetObservabilityMode() {
			return
		}
		unanswered = append(unanswered, messages[i])
		if len(answers) > len(unanswered) {
			rt.Fatalf("after message %d: %d answers to %d messages", i, len(answers), len(unanswered))
		}
		if len(answers) == 0 && f.next < len(messages) && !observed && !holds(messages) {
			rt.Errorf("message %d has no answer", i)
		}
		for _, r := range answers {
			checkAnswer(t, unanswered[0], r)
			unanswered = unanswered[1:]
			if isDecision(r) {
				decisions++
			}
		}
	}
	duplex := slices.ContainsFunc(messages, func(m *extprocv3.ProcessingRequest) bool {
		return m.GetProtocolConfig().GetRequestBodyMode() == modeDuplex
	})
	if err := server.Process(f); err != nil && (server.observer.(*recorder).panicIn == "" || !duplex) {
		rt.Errorf("Process returned %v", err) // a defect must fail a request whose body is on its way
	}
	if decisions > 1 {
		rt.Errorf("%d decisions were sent", decisions)
	}
}

// holds reports whether answers may wait for the body.
func holds(messages []*extprocv3.ProcessingRequest) bool {
	for _, m := range messages {
		p := m.GetProtocolConfig()
		if p.GetRequestBodyMode() == modeDuplex || p.GetSendBodyWithoutWaitingForHeaderResponse() {
			return true
		}
	}
	return false
}

func count(list []string, want string) int {
	n := 0
	for _, s := range list {
		if s == want {
			n++
		}
	}
	return n
}
