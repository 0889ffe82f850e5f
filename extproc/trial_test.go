package extproc

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// onTrial is settings that try a policy on a share of the conversations.
func onTrial(share float64, policy route.Policy) trial.Settings {
	return trial.Settings{Share: share, ShareLength: 256, Policy: policy}
}

// trying returns a server of one pool with policies on trial.
func trying(t testing.TB, policy route.Policy, endpoints int, shadow, split trial.Settings, o Observer) (*Server, *trial.Trials) {
	router := newRouter(t, policy, endpoints)
	trials := trial.New(router)
	trials.Set(shadow, split)
	return NewForPools(&Pools{fallback: &Pool{Router: router, Trials: trials}}, testSettings, o, one), trials
}

func drawPolicy(rt *rapid.T, name string) route.Policy {
	policy := prefixAware()
	policy.Strategy = rapid.SampledFrom(route.Strategies()).Draw(rt, name)
	policy.PrefixLength = rapid.SampledFrom([]int{route.AutoPrefixLength, 1024, 1500, 4096}).Draw(rt, name+" length")
	return policy
}

// tell plays messages and prints every answer, but for the mode of the body, and what
// observers knew, but for how much of the body was seen.
func tell(t testing.TB, server *Server, observer *recorder, messages []*extprocv3.ProcessingRequest) string {
	t.Helper()
	var b strings.Builder
	f := &fakeStream{ctx: t.Context(), messages: messages, end: io.EOF}
	f.answered = func(_ int, answers []*extprocv3.ProcessingResponse) {
		for _, r := range answers {
			fmt.Fprintln(&b, bodyModeLine.ReplaceAllString(describe(r), ""))
		}
	}
	if err := server.Process(f); err != nil {
		t.Errorf("Process returned %v", err)
	}
	f.flush()
	idle(t, server.pools.Load().fallback.Router)
	for i, r := range observer.records {
		fmt.Fprintln(&b, observer.events[i], r.Problems, r.Decision, r.Status, r.Served, r.Missed, r.Unanswered, r.KeyChars, r.API)
	}
	return b.String()
}

// A shadow changes nothing but whether the body is sent to us, and leaves nothing in its
// world.
func TestShadowChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policy, other := drawPolicy(rt, "real"), drawPolicy(rt, "shadow")
		endpoints := rapid.IntRange(0, 3).Draw(rt, "endpoints")
		messages := messagesOf(t, rapid.SliceOfN(rapid.SampledFrom(scriptLines), 0, 8).Draw(rt, "script")...)
		observer := new(recorder)
		server, _ := trying(t, policy, endpoints, trial.Settings{}, trial.Settings{}, observer)
		want := tell(t, server, observer, messages)
		observer = new(recorder)
		server, trials := trying(t, policy, endpoints, onTrial(1, other), trial.Settings{}, observer)
		if diff := cmp.Diff(want, tell(t, server, observer, messages)); diff != "" {
			rt.Errorf("the shadow makes a difference (-without +with):\n%s", diff)
		}
		if report, _ := trials.Report(); report.Outstanding != 0 || report.Real.Decisions() > 1 {
			rt.Errorf("%+v", report)
		}
	})
}

// chat returns a chat of one prompt, as its two messages and the response.
func chat(t testing.TB, text string) []*extprocv3.ProcessingRequest {
	body := `{"messages":[{"role":"user","content":"` + text + `"}]}`
	return messagesOf(t, fmt.Sprintf("headers :method=POST :path=/v1/chat/completions content-length=%d mode:NONE", len(body)),
		"body eos "+body, "response 200 from=10.0.0.1:80 attempts=1")
}

// prompts are of lengths around those that policies read, and some have long beginnings in
// common.
func prompts(rt *rapid.T) (texts []string) {
	for range rapid.IntRange(1, 6).Draw(rt, "prompts") {
		n := rapid.SampledFrom([]int{1, 255, 256, 257, 1023, 1024, 1025, 1499, 1501, 3000}).Draw(rt, "length")
		text := []byte(strings.Repeat("x", n))
		text[rapid.IntRange(0, n-1).Draw(rt, "difference")] = 'y'
		texts = append(texts, string(text))
	}
	return texts
}

// All of a pool that is split is decided as if the policy were the pool's own, and a
// shadow of that policy reads the prompts as it does: it would move none. No time passes,
// which has a part in the costs.
func TestSplitOfAllDecidesAsThePolicy(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policy, other, texts := drawPolicy(rt, "real"), drawPolicy(rt, "split"), prompts(rt)
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = splitOfAll(t, policy, other, texts) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

func splitOfAll(t *testing.T, policy, other route.Policy, texts []string) (problem string) {
	observer, alone := new(recorder), new(recorder)
	server, trials := trying(t, policy, 5, onTrial(1, other), onTrial(1, other), observer)
	want, _ := trying(t, other, 5, trial.Settings{}, trial.Settings{}, alone)
	for i, text := range texts {
		messages := chat(t, text)
		play(t, server, messages...)
		play(t, want, messages...)
		if got, w := observer.records[3*i].Decision, alone.records[3*i].Decision; got != w {
			return fmt.Sprintf("prompt %d of %d characters: %+v, want %+v", i, len(text), got, w)
		}
		if arm := observer.records[3*i].Arm; arm != trial.SplitArm || alone.records[3*i].Arm != trial.NoArm {
			return fmt.Sprintf("arm %q", arm)
		}
	}
	shadow, split := trials.Report()
	switch {
	case shadow.Moved != 0 || fmt.Sprint(shadow.Real) != fmt.Sprint(shadow.Shadow) || shadow.Outstanding != 0:
		return fmt.Sprintf("%+v", shadow)
	case split.Main.Decisions() != 0 || split.Split.Characters != shadow.Real.Characters || split.Split.Cached != shadow.Real.Cached:
		return fmt.Sprintf("%+v, the shadow %+v", split, shadow)
	}
	return ""
}

// A larger share moves requests to the split arm and none away from it; the others are
// decided as if there were none.
func TestMoreOfASplit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		texts := prompts(rt)
		small := rapid.Float64Range(0.01, 1).Draw(rt, "small")
		large := rapid.Float64Range(small, 1).Draw(rt, "large")
		var arms [2][]trial.Arm
		for k, share := range []float64{small, large} {
			observer := new(recorder)
			other := prefixAware()
			other.PrefixLength = 4096
			server, _ := trying(t, prefixAware(), 5, trial.Settings{}, onTrial(share, other), observer)
			for i, text := range texts {
				play(t, server, chat(t, text)...)
				r := observer.records[3*i]
				arms[k] = append(arms[k], r.Arm)
				if want := map[trial.Arm]int{trial.MainArm: min(len(text), 1024), trial.SplitArm: min(len(text), 4096)}[r.Arm]; r.KeyChars != want {
					rt.Fatalf("%s: the key has %d characters, want %d", r.Arm, r.KeyChars, want)
				}
			}
		}
		for i := range texts {
			if arms[0][i] == trial.SplitArm && arms[1][i] != trial.SplitArm {
				rt.Fatalf("prompt %d is the split's of %v and not of %v", i, small, large)
			}
		}
	})
}

// Requests without text are the main policy's, and so are those that Envoy's configuration
// gives a policy of their own, which have no arm.
func TestWhoIsNotSplit(t *testing.T) {
	least := route.Policy{Strategy: route.LeastOutstandingRequests}
	for _, c := range []struct {
		name  string
		lines []string
		own   bool
		arm   trial.Arm
		keyed uint64 // prompts whose characters are counted
	}{
		{"a chat", []string{"headers :path=/v1/chat/completions content-length=57 mode:NONE", `body eos {"messages":[{"role":"user","content":"Hello there"}]}`}, false, trial.SplitArm, 1},
		{"no body", []string{"headers eos :method=GET :path=/v1/models"}, false, trial.MainArm, 0},
		{"no text", []string{"headers :path=/v1/chat/completions content-length=2 mode:NONE", "body eos {}"}, false, trial.MainArm, 0},
		{"too large", []string{"headers :path=/v1/chat/completions content-length=5000 mode:NONE"}, false, trial.MainArm, 0},
		{"of Envoy's", []string{"headers :path=/v1/chat/completions content-length=57 mode:NONE", `body eos {"messages":[{"role":"user","content":"Hello there"}]}`}, true, trial.NoArm, 1},
	} {
		observer := new(recorder)
		server, trials := trying(t, route.Policy{}, 3, onTrial(1, prefixAware()), onTrial(1, prefixAware()), observer)
		if c.own {
			s := testSettings
			s.Policies = given{least}
			server.SetSettings(s)
		}
		play(t, server, messagesOf(t, c.lines...)...)
		r := observer.records[0]
		if r.Arm != c.arm || c.own && r.Decision.Strategy != route.LeastOutstandingRequests {
			t.Errorf("%s: arm %q, %+v", c.name, r.Arm, r.Decision)
		}
		shadow, _ := trials.Report()
		if shadow.Real.Decisions() != 1 || (shadow.Real.Characters > 0) != (c.keyed > 0) {
			t.Errorf("%s: %+v", c.name, shadow)
		}
		if c.own && shadow.Shadow.ByReason[route.ByLeastOutstanding] != 1 {
			t.Errorf("%s: the shadow decided by another policy than Envoy's configuration gives: %+v", c.name, shadow.Shadow)
		}
	}
}

// given is what Envoy's configuration says of every request.
type given struct{ policy route.Policy }

func (g given) Policy(_ context.Context, _ *extprocv3.ProcessingRequest) ChosenPolicy {
	return ChosenPolicy{Policy: g.policy, Origin: "route_metadata"}
}

// A defect in a shadow is told of and changes nothing else. A prefix length of 0, which no
// configuration has, is one.
func TestDefectInShadow(t *testing.T) {
	panicked := regexp.MustCompile(`(?m)^panicked.*\n|panic`)
	broken := route.Policy{Strategy: route.PrefixAware}
	messages := chat(t, strings.Repeat("x", 2000))
	observer := new(recorder)
	server, _ := trying(t, prefixAware(), 3, trial.Settings{}, trial.Settings{}, observer)
	want := tell(t, server, observer, messages)
	observer = new(recorder)
	server, trials := trying(t, prefixAware(), 3, onTrial(1, broken), trial.Settings{}, observer)
	got := tell(t, server, observer, messages)
	if !slices.Contains(observer.events, "panicked") {
		t.Error("the defect was not told of")
	}
	if diff := cmp.Diff(want, panicked.ReplaceAllString(got, "")); diff != "" {
		t.Errorf("the defect makes a difference (-without +with):\n%s", diff)
	}
	if report, _ := trials.Report(); report.Outstanding != 0 {
		t.Errorf("%+v", report)
	}
}

// What really happens beside a shadow is where a request was served, also after a retry.
func TestShadowIsToldWhoServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := new(recorder)
		server, trials := trying(t, route.Policy{}, 2, onTrial(1, route.Policy{}), trial.Settings{}, observer)
		ask := func() (s *slowStream, end func(), chosen string) {
			s, end = open(t, server)
			s.messages <- message(t, "headers eos :method=GET :path=/v1/models mode:NONE")
			synctest.Wait()
			<-s.answers
			return s, end, observer.records[len(observer.records)-1].Decision.Chosen
		}
		first, end, chosen := ask()
		defer end()
		served := map[string]string{"10.0.0.1:80": "10.0.0.2:80", "10.0.0.2:80": "10.0.0.1:80"}[chosen]
		first.messages <- message(t, "response 200 from="+served+" attempts=2")
		synctest.Wait()
		<-first.answers
		_, end, chosen = ask()
		defer end()
		want := 2. // the first request's busiest, and the second's
		if chosen == served {
			want = 3
		}
		if report, _ := trials.Report(); report.Real.Busiest != want {
			t.Errorf("the busiest ran %v requests, want %v", report.Real.Busiest, want)
		}
	})
}

// What is on trial may change while requests run: each gives back what it holds where it
// holds it, and is decided by what was on trial when it came.
func TestTrialsChangeWhileRequestsRun(t *testing.T) {
	observer := new(recorder)
	server, trials := trying(t, route.Policy{}, 3, onTrial(1, prefixAware()), onTrial(1, prefixAware()), observer)
	changes := []func(){
		func() { trials.Set(trial.Settings{}, trial.Settings{}) },
		func() { trials.Set(onTrial(1, route.Policy{}), trial.Settings{}) },
		func() { trials.Set(onTrial(0.5, prefixAware()), onTrial(0.5, route.Policy{})) },
	}
	for _, change := range changes {
		for at := range 3 {
			trials.Set(onTrial(1, prefixAware()), onTrial(1, prefixAware()))
			f := &fakeStream{ctx: t.Context(), messages: chat(t, "Hello there"), end: io.EOF}
			f.answered = func(i int, _ []*extprocv3.ProcessingResponse) {
				if i == at {
					change()
				}
			}
			if err := server.Process(f); err != nil {
				t.Error(err)
			}
			if r := observer.records[len(observer.records)-1]; r.Arm != trial.SplitArm {
				t.Errorf("arm %q", r.Arm)
			}
			idle(t, server.pools.Load().fallback.Router)
			if report, _ := trials.Report(); report.Outstanding != 0 {
				t.Errorf("%d outstanding", report.Outstanding)
			}
		}
	}
	if shadow, split := trials.Report(); shadow.Real.Decisions() != 9 || split.Split.Decisions() != 9 {
		t.Errorf("%d and %d decisions, want 9 of each", shadow.Real.Decisions(), split.Split.Decisions())
	}
}

// A prompt that is decided without its text is as long as its body says, however little of
// it told the arm.
func TestLengthOfAPromptThatIsNotRead(t *testing.T) {
	observer := new(recorder)
	server, _ := trying(t, prefixAware(), 3, trial.Settings{}, onTrial(1, route.Policy{PrefixLength: route.AutoPrefixLength}), observer)
	play(t, server, chat(t, strings.Repeat("x", 3000))...)
	if r := observer.records[0]; r.PromptChars < 3000 || r.KeyChars != 1024 || r.Decision.Reason != route.ByRandom {
		t.Errorf("%d characters, %d of them read, %+v", r.PromptChars, r.KeyChars, r.Decision)
	}
}

// BenchmarkTried is what policies on trial cost a request, without gRPC around it. The
// pool's own policy reads 1,024 characters.
func BenchmarkTried(b *testing.B) {
	auto := route.Policy{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength}
	for _, c := range []struct {
		name          string
		shadow, split trial.Settings
	}{
		{"none", trial.Settings{}, trial.Settings{}},
		{"shadow", onTrial(1, auto), trial.Settings{}},
		{"split", trial.Settings{}, onTrial(0.05, auto)},
	} {
		for _, n := range []int{4 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%dKiB", c.name, n>>10), func(b *testing.B) {
				server, _ := trying(b, prefixAware(), 7, c.shadow, c.split, silent{})
				settings := testSettings
				settings.BodyLimit = 4 << 20
				server.SetSettings(settings)
				headers, body := buffered(b, n)
				b.ReportAllocs()
				for b.Loop() {
					st := server.begin(b.Context())
					for _, m := range []*extprocv3.ProcessingRequest{headers, body} {
						st.handle(m)
						st.afterwards()
					}
					st.end()
				}
			})
		}
	}
}
