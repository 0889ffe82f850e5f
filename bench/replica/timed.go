package replica

import (
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// The worker's part in requests with times of their own. They take no memory and
// no time from the engine, but they count, and they use the cache.

func (w *worker) enter(t *tokens) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.timed = true
	w.timed.Running++
}

// leave undoes enter.
func (w *worker) leave(t *tokens) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.timed {
		t.timed = false
		w.timed.Running--
	}
}

// lookup returns how many tokens of the prompt are cached.
func (w *worker) lookup(p engine.Prompt) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	cached := w.engine.Cached(p)
	w.timed.QueriedTokens += int64(p.Tokens)
	w.timed.HitTokens += int64(cached)
	return cached
}

// prefilled puts a prompt into the cache.
func (w *worker) prefilled(p engine.Prompt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engine.Store(p)
	w.timed.PromptTokens += int64(p.Tokens)
}

func (w *worker) store(p engine.Prompt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engine.Store(p)
}

// generated counts a token.
func (w *worker) generated() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timed.GeneratedTokens++
}

// decodeStep is the time of a step in which a sequence of contextTokens decodes
// with all that run.
func (w *worker) decodeStep(contextTokens int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	running := w.engine.Counters().Running + w.timed.Running
	return w.scaled(w.params.DecodeStep(running, w.engine.Context()+contextTokens))
}

// frontEnd is the time before a request reaches the engine.
func (w *worker) frontEnd() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scaled(w.params.FrontEnd)
}
