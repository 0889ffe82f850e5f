package engine_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// plain makes times that one can add up by hand: a step is 10 ms, 1 ms a token
// of prefill and 2 ms a sequence that decodes.
func plain() engine.Params {
	return engine.Params{
		StepTime: 10 * time.Millisecond, PrefillToken: time.Millisecond, DecodeSequence: 2 * time.Millisecond,
		StepTokens: 100, MaxSequences: 3, BlockTokens: 10, KVTokens: 400,
	}
}

func scheduler(t *testing.T, p engine.Params) *engine.Scheduler {
	t.Helper()
	s, err := engine.NewScheduler(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// chain returns n hashes that begin like those of the same name.
func chain(name string, n int) []uint64 {
	return engine.NewPrompt(1, strings.Repeat("abcd", n), name).Blocks
}

func submit(t *testing.T, s *engine.Scheduler, prompt, output int, blocks []uint64) *engine.Request {
	t.Helper()
	r := &engine.Request{PromptTokens: prompt, OutputTokens: output, Blocks: blocks}
	if err := s.Submit(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// finish makes single steps until nothing is left, and returns how long it took.
func finish(s *engine.Scheduler) (total time.Duration) {
	for d, ok := s.Begin(0); ok; d, ok = s.Begin(0) {
		total += d
		s.End()
	}
	return total
}

// A scenario to be read: the budget is shared by one that decodes, one in parts
// and one that waits; the last waits for a place, and hits what the first left.
func ExampleScheduler() {
	s, err := engine.NewScheduler(plain())
	if err != nil {
		fmt.Println(err)
		return
	}
	names := make(map[*engine.Request]string)
	for _, q := range []struct {
		name           string
		prompt, output int
		blocks         []uint64
	}{
		{"a", 30, 4, chain("x", 3)},
		{"b", 150, 2, chain("y", 15)},
		{"c", 45, 3, chain("z", 4)},
		{"d", 35, 2, chain("x", 3)},
	} {
		r := &engine.Request{PromptTokens: q.prompt, OutputTokens: q.output, Blocks: q.blocks}
		names[r] = q.name
		if err := s.Submit(r); err != nil {
			fmt.Println(err)
		}
	}
	list := func(requests []*engine.Request) (text string) {
		for _, r := range requests {
			text += names[r]
		}
		return text
	}
	fmt.Println("time   prefill  decoded  first  finished  running  waiting  pinned  hits")
	now := time.Duration(0)
	for d, ok := s.Begin(0); ok; d, ok = s.Begin(0) {
		now += d
		step, c := s.End(), s.Counters()
		fmt.Printf("%-5v  %7d  %7s  %5s  %8s  %7d  %7d  %6d  %4d\n", now, step.PrefillTokens, list(step.Decoded), list(step.First), list(step.Finished),
			c.Running, c.Waiting, c.PinnedBlocks, c.HitTokens)
	}
	// Output:
	// time   prefill  decoded  first  finished  running  waiting  pinned  hits
	// 110ms      100               a                  2        2      20     0
	// 221ms       99        a      b                  3        1      25     0
	// 261ms       26       ab      c         b        2        1       9     0
	// 280ms        5       ac      d         a        2        0       9    30
	// 294ms        0       cd               cd        0        0       0    30
}

func TestSubmitRefuses(t *testing.T) {
	s := scheduler(t, plain())
	for want, r := range map[string]*engine.Request{
		"0 prompt and 1 output":            {OutputTokens: 1},
		"1 prompt and 0 output":            {PromptTokens: 1},
		"at most 400 in all, the KV cache": {PromptTokens: 400, OutputTokens: 1},
		"submitted before":                 submit(t, s, 1, 1, nil),
	} {
		if err := s.Submit(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", want, err)
		}
	}
	if c := s.Counters(); c.Submitted != 1 || c.Waiting != 1 {
		t.Errorf("counters %+v", c)
	}
}

func TestCacheHits(t *testing.T) {
	for name, tc := range map[string]struct {
		prompt int
		blocks []uint64
		want   int
	}{
		"the same: the last token is computed": {40, chain("x", 4), 30},
		"one token more":                       {41, chain("x", 4), 40},
		"into the answer":                      {75, chain("x", 7), 60}, // 40 + 25 tokens, the last not computed
		"shorter":                              {25, chain("x", 2), 20},
		"less than a block":                    {9, nil, 0},
		"other beginning":                      {60, chain("y", 6), 0},
		"one token":                            {1, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := scheduler(t, plain())
			submit(t, s, 40, 25, chain("x", 6))
			finish(s)
			if got := s.Cached(engine.Prompt{Tokens: tc.prompt, Blocks: tc.blocks}); got != tc.want {
				t.Errorf("%d cached, want %d", got, tc.want)
			}
			r := submit(t, s, tc.prompt, 1, tc.blocks)
			if d, want := finish(s), plain().Prefill(tc.prompt-tc.want); r.Cached() != tc.want || d != want {
				t.Errorf("%d cached in %v, want %d in %v", r.Cached(), d, tc.want, want)
			}
		})
	}
}

// The last token of an answer is sampled, not computed.
func TestLastBlockOfAnswerNeedsOneMoreToken(t *testing.T) {
	for output, want := range map[int]int{10: 40, 11: 50} {
		s := scheduler(t, plain())
		submit(t, s, 40, output, chain("x", 5))
		finish(s)
		if got := s.Cached(engine.Prompt{Tokens: 60, Blocks: chain("x", 5)}); got != want {
			t.Errorf("after 40+%d tokens %d cached, want %d", output, got, want)
		}
	}
}

func TestEqualPromptsInOneStepMiss(t *testing.T) {
	s := scheduler(t, plain())
	first := submit(t, s, 45, 1, chain("x", 4))
	second := submit(t, s, 45, 1, chain("x", 4))
	s.Begin(0)
	third := submit(t, s, 45, 1, chain("x", 4))
	s.End()
	finish(s)
	if first.Cached() != 0 || second.Cached() != 0 || third.Cached() != 40 {
		t.Errorf("%d, %d and %d cached, want 0, 0 and 40", first.Cached(), second.Cached(), third.Cached())
	}
}

func TestTailsAreEvictedBeforeHeads(t *testing.T) {
	s := scheduler(t, plain()) // 40 blocks
	old := engine.Prompt{Tokens: 300, Blocks: chain("x", 30)}
	s.Store(old)
	s.Store(engine.Prompt{Tokens: 200, Blocks: chain("y", 20)})
	if got := s.Cached(old); got != 200 {
		t.Errorf("%d tokens of the old prompt left, want its first 200", got)
	}
}

func TestPinnedBlocksStay(t *testing.T) {
	s := scheduler(t, plain())
	submit(t, s, 95, 105, chain("x", 9))
	s.Begin(0)
	s.End()
	s.Store(engine.Prompt{Tokens: 1000, Blocks: chain("y", 100)}) // 20 blocks are left
	for name, want := range map[string]int{"x": 90, "y": 200} {
		if got := s.Cached(engine.Prompt{Tokens: 1000, Blocks: chain(name, 100)}); got != want {
			t.Errorf("%s: %d cached, want %d", name, got, want)
		}
	}
	s.ClearCache()
	if got := s.Cached(engine.Prompt{Tokens: 1000, Blocks: chain("y", 100)}); got != 0 || s.Counters().PinnedBlocks != 20 {
		t.Errorf("after clearing %d cached, %+v", got, s.Counters())
	}
	finish(s)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// The head of the queue waits for memory, and those behind it wait with it.
func TestHeadOfLineBlocks(t *testing.T) {
	s := scheduler(t, plain())
	submit(t, s, 50, 250, nil)
	s.Begin(0)
	s.End()
	large, small := submit(t, s, 100, 100, nil), submit(t, s, 10, 1, nil)
	for range 100 {
		s.Begin(0)
		s.End()
	}
	if large.State() != engine.Waiting || small.State() != engine.Waiting {
		t.Errorf("states %d and %d, want both waiting", large.State(), small.State())
	}
	if !s.Cancel(large) || s.Cancel(large) {
		t.Error("want to cancel once")
	}
	s.Begin(0)
	s.End()
	if small.State() != engine.Finished {
		t.Errorf("state %d after the head has left, want finished", small.State())
	}
}

// What does not fit is tried again when its beginning can be shared.
func TestSharedBlocksMakeRoom(t *testing.T) {
	p := plain()
	p.StepTokens = 300
	s := scheduler(t, p) // 40 blocks
	first, second := submit(t, s, 200, 50, chain("x", 20)), submit(t, s, 200, 50, chain("x", 20))
	for range 2 {
		s.Begin(0)
		if s.End(); first.State() != engine.Decoding {
			t.Fatalf("first in state %d", first.State())
		}
	}
	if second.State() != engine.Decoding || second.Cached() != 190 {
		t.Errorf("second in state %d with %d cached, want decoding with 190", second.State(), second.Cached())
	}
}

// arrival is a request and when it comes.
type arrival struct {
	at time.Duration
	r  engine.Request
}

// simulate serves the arrivals and notes when each request got its first and
// its last token.
func simulate(p engine.Params, arrivals []arrival, leaping bool) (log string, steps int) {
	s, err := engine.NewScheduler(p)
	if err != nil {
		return err.Error(), 0
	}
	var b strings.Builder
	index := make(map[*engine.Request]int)
	for now, next := time.Duration(0), 0; ; {
		for ; next < len(arrivals) && arrivals[next].at <= now; next++ {
			r := arrivals[next].r
			index[&r] = next
			if err := s.Submit(&r); err != nil {
				return err.Error(), 0
			}
		}
		until := time.Duration(math.MaxInt64)
		if next < len(arrivals) {
			until = arrivals[next].at
		}
		leap := time.Duration(0)
		if leaping {
			leap = until - now
		}
		d, ok := s.Begin(leap)
		if !ok && next == len(arrivals) {
			fmt.Fprintf(&b, "%+v", s.Counters())
			return b.String(), steps
		}
		if !ok {
			now = until
			continue
		}
		now += d
		steps++
		step := s.End()
		for _, r := range step.First {
			fmt.Fprintf(&b, "%v first %d, %d cached\n", now, index[r], r.Cached())
		}
		for _, r := range step.Finished {
			fmt.Fprintf(&b, "%v last %d\n", now, index[r])
		}
	}
}

func TestLeapingEqualsStepping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		var arrivals []arrival
		at := time.Duration(0)
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			// Often exactly at the end of a step, 10,000 and a little.
			at += time.Duration(rapid.IntRange(0, 60_000).Draw(t, "gap"))
			arrivals = append(arrivals, arrival{at, *drawRequest(t, p)})
		}
		stepped, n := simulate(p, arrivals, false)
		leapt, m := simulate(p, arrivals, true)
		if stepped != leapt || m > n {
			t.Fatalf("stepping, %d times:\n%s\nleaping, %d times:\n%s", n, stepped, m, leapt)
		}
	})
}

// An arrival exactly at the end of a step is admitted to the next.
func TestLeapEndsAtTheNextArrival(t *testing.T) {
	p := plain()
	p.DecodeSequence = 0 // steps of 10 ms
	for leap, want := range map[time.Duration]int{
		-1: 1, 0: 1, 1: 1, 10 * time.Millisecond: 1, 10*time.Millisecond + 1: 2, 30 * time.Millisecond: 3, time.Hour: 49,
	} {
		s := scheduler(t, p)
		submit(t, s, 1, 50, nil)
		s.Begin(time.Hour) // the prefill: no leap
		s.End()
		d, _ := s.Begin(leap)
		if got := s.End().Count; got != want || d != time.Duration(want)*10*time.Millisecond {
			t.Errorf("leap of %v: %d steps in %v, want %d", leap, got, d, want)
		}
	}
}
