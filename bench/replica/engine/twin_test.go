package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// twin is the scheduler written to be obviously right: one list of running
// requests in the order of admission, everything counted anew each time, blocks
// found by looking at all of them.
type twin struct {
	p       engine.Params
	blocks  []*twinBlock
	free    []*twinBlock // the next to be taken first
	waiting []*twinRequest
	running []*twinRequest
}

type twinBlock struct {
	content uint64 // 0: nothing that can be hit
	users   int
}

type twinRequest struct {
	name              int
	prompt, output    int
	content           []uint64
	cached, computed  int
	generated         int
	chunk             int
	begun             bool // decodes in the step in progress
	held              []*twinBlock
	offered           map[int]bool // the blocks that were published
	finished, dropped bool
}

func newTwin(p engine.Params) *twin {
	w := &twin{p: p}
	for range p.KVTokens / p.BlockTokens {
		w.blocks = append(w.blocks, &twinBlock{})
	}
	w.free = slices.Clone(w.blocks)
	return w
}

func (w *twin) find(content uint64) *twinBlock {
	for _, b := range w.blocks {
		if b.content == content {
			return b
		}
	}
	return nil
}

func (w *twin) begin() time.Duration {
	budget := w.p.StepTokens
	d := w.p.StepTime
	for _, r := range w.running {
		if r.begun = r.generated > 0; r.begun {
			budget--
			d += w.p.DecodeSequence + time.Duration(r.prompt+r.generated)*w.p.ContextToken
		}
	}
	for _, r := range w.running {
		if !r.begun {
			r.chunk = min(budget, r.prompt-r.computed)
			budget -= r.chunk
			d += time.Duration(r.chunk) * w.p.PrefillToken
		}
	}
	for budget > 0 && len(w.waiting) > 0 && len(w.running) < w.p.MaxSequences && w.admit(w.waiting[0]) {
		r := w.waiting[0]
		w.waiting = w.waiting[1:]
		w.running = append(w.running, r)
		r.chunk = min(budget, r.prompt-r.computed)
		budget -= r.chunk
		d += time.Duration(r.chunk) * w.p.PrefillToken
	}
	return d
}

func (w *twin) admit(r *twinRequest) bool {
	var hit []*twinBlock
	free := len(w.free)
	for i, content := range r.content {
		b := w.find(content)
		if b == nil || (i+1)*w.p.BlockTokens >= r.prompt {
			break
		}
		if b.users == 0 {
			free--
		}
		hit = append(hit, b)
	}
	need := -len(hit)
	for tokens := 0; tokens < r.prompt+r.output; tokens += w.p.BlockTokens {
		need++
	}
	if need > free {
		return false
	}
	for _, b := range hit {
		w.free = slices.DeleteFunc(w.free, func(f *twinBlock) bool { return f == b })
	}
	taken := w.free[:need]
	w.free = slices.Clone(w.free[need:])
	for _, b := range taken {
		b.content = 0
	}
	r.held = slices.Concat(hit, taken)
	for i := range hit {
		r.offered[i] = true
	}
	for _, b := range r.held {
		b.users++
	}
	r.cached = len(hit) * w.p.BlockTokens
	r.computed = r.cached
	return true
}

// end returns the names of those that decoded, got their first token, ended.
func (w *twin) end() (decoded, first, finished []int) {
	for _, r := range slices.Clone(w.running) {
		if r.begun {
			r.generated++
			decoded = append(decoded, r.name)
			finished = w.endIfComplete(r, finished)
		}
	}
	for _, r := range slices.Clone(w.running) {
		if r.begun || r.finished {
			continue
		}
		r.computed += r.chunk
		w.publish(r, r.computed)
		if r.computed == r.prompt {
			r.generated = 1
			first = append(first, r.name)
			finished = w.endIfComplete(r, finished)
		}
	}
	return decoded, first, finished
}

func (w *twin) endIfComplete(r *twinRequest, finished []int) []int {
	if r.generated < r.output {
		return finished
	}
	w.publish(r, r.prompt+r.output-1)
	w.drop(r)
	r.finished = true
	return append(finished, r.name)
}

func (w *twin) publish(r *twinRequest, tokens int) {
	for i, content := range r.content {
		if (i+1)*w.p.BlockTokens <= tokens && !r.offered[i] {
			r.offered[i] = true // once, also if another holds the same
			if w.find(content) == nil {
				r.held[i].content = content
			}
		}
	}
}

func (w *twin) drop(r *twinRequest) {
	gone := func(o *twinRequest) bool { return o == r }
	w.waiting, w.running = slices.DeleteFunc(w.waiting, gone), slices.DeleteFunc(w.running, gone)
	for _, b := range slices.Backward(r.held) {
		if b.users--; b.users == 0 {
			w.free = append(w.free, b)
		}
	}
}

// pair drives a scheduler and its twin with the same requests.
type pair struct {
	s        *engine.Scheduler
	w        *twin
	requests []*engine.Request
	twins    []*twinRequest
}

func (p *pair) submit(t *rapid.T) {
	r := drawRequest(t, p.w.p)
	if err := p.s.Submit(r); err != nil {
		t.Fatal(err)
	}
	o := &twinRequest{name: len(p.requests), prompt: r.PromptTokens, output: r.OutputTokens, content: r.Blocks, offered: map[int]bool{}}
	p.requests, p.twins = append(p.requests, r), append(p.twins, o)
	p.w.waiting = append(p.w.waiting, o)
}

func (p *pair) cancel(t *rapid.T) {
	if len(p.requests) == 0 {
		return
	}
	i := rapid.IntRange(0, len(p.requests)-1).Draw(t, "canceled")
	o := p.twins[i]
	if want := !o.finished && !o.dropped; p.s.Cancel(p.requests[i]) != want {
		t.Fatalf("cancel of request %d: want %t", i, want)
	} else if want {
		p.w.drop(o)
		o.dropped = true
	}
}

// step makes one step, with something happening in its middle, and compares.
func (p *pair) step(t *rapid.T, middle func()) {
	busy := len(p.w.waiting)+len(p.w.running) > 0
	d, ok := p.s.Begin(0)
	if ok != busy {
		t.Fatalf("begin %t, want %t: work waits", ok, busy)
	}
	if !ok {
		return
	}
	if want := p.w.begin(); d != want {
		t.Fatalf("step of %v, twin says %v", d, want)
	}
	middle()
	decoded, first, finished := p.w.end()
	step := p.s.End()
	got := fmt.Sprint(p.names(step.Decoded), p.names(step.First), p.names(step.Finished))
	if want := fmt.Sprint(decoded, first, finished); got != want {
		t.Fatalf("decoded, first and finished %s, twin says %s", got, want)
	}
	p.compare(t)
}

func (p *pair) names(list []*engine.Request) []int {
	var names []int
	for _, r := range list {
		names = append(names, slices.Index(p.requests, r))
	}
	return names
}

func (p *pair) compare(t *rapid.T) {
	if err := p.s.Check(); err != nil {
		t.Fatal(err)
	}
	for i, r := range p.requests {
		o := p.twins[i]
		if r.Cached() != o.cached || r.Generated() != o.generated || r.Uncomputed() != o.prompt-o.computed {
			t.Fatalf("request %d: %d cached, %d generated, %d to compute, twin says %+v", i, r.Cached(), r.Generated(), r.Uncomputed(), *o)
		}
	}
	c := p.s.Counters()
	if c.Running != len(p.w.running) || c.Waiting != len(p.w.waiting) || c.Blocks-c.PinnedBlocks != len(p.w.free) {
		t.Fatalf("counters %+v, twin has %d running, %d waiting, %d free", c, len(p.w.running), len(p.w.waiting), len(p.w.free))
	}
}

func drawParams(t *rapid.T) engine.Params {
	sequences := rapid.IntRange(1, 4).Draw(t, "sequences")
	return engine.Params{
		StepTime: 10_000, PrefillToken: 100, DecodeSequence: 17, ContextToken: 3,
		MaxSequences: sequences, StepTokens: sequences + rapid.IntRange(0, 12).Draw(t, "budget"),
		BlockTokens: rapid.IntRange(1, 4).Draw(t, "block"), KVTokens: rapid.IntRange(16, 40).Draw(t, "capacity"),
	}
}

// drawRequest makes prompts that often begin alike, and always fit.
func drawRequest(t *rapid.T, p engine.Params) *engine.Request {
	most := p.KVTokens / p.BlockTokens * p.BlockTokens
	r := &engine.Request{PromptTokens: rapid.IntRange(1, most-1).Draw(t, "prompt")}
	r.OutputTokens = rapid.IntRange(1, min(6, most-r.PromptTokens)).Draw(t, "output")
	parent := uint64(1)
	for range rapid.IntRange(0, (r.PromptTokens+r.OutputTokens)/p.BlockTokens).Draw(t, "blocks") {
		parent = 3*parent + uint64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "content"))
		r.Blocks = append(r.Blocks, parent)
	}
	return r
}

func TestSchedulerEqualsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := drawParams(t)
		s, err := engine.NewScheduler(params)
		if err != nil {
			t.Fatal(err)
		}
		p := &pair{s: s, w: newTwin(params)}
		act := func() {
			switch rapid.SampledFrom([]string{"submit", "submit", "cancel", "nothing"}).Draw(t, "act") {
			case "submit":
				p.submit(t)
			case "cancel":
				p.cancel(t)
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			act()
			p.step(t, act)
		}
		for limit := 0; len(p.w.running)+len(p.w.waiting) > 0; limit++ {
			p.step(t, func() {})
			if limit > 100*len(p.requests) {
				t.Fatal("what was submitted does not finish")
			}
		}
		if c := s.Counters(); c.Submitted != c.Finished+c.Canceled || c.PinnedBlocks != 0 {
			t.Fatalf("at the end %+v", c)
		}
	})
}
