package replica

import (
	"context"
	"sync"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// worker is the running engine of one replica: the model of package engine,
// with a clock, a queue and a lock.
type worker struct {
	params engine.Params
	scale  float64
	// turn is held by the one request that is being prefilled. Senders on a
	// channel are served in the order of their arrival.
	turn chan struct{}

	mu           sync.Mutex
	cache        *engine.Cache
	running      int       // sequences decoding
	context      int       // their tokens in all
	prefillUntil time.Time // end of the prefill in progress
}

func newWorker(p Params) (*worker, error) {
	cache, err := engine.NewCache(p.Engine.KVTokens)
	if err != nil {
		return nil, err
	}
	return &worker{params: p.Engine, scale: p.TimeScale, turn: make(chan struct{}, 1), cache: cache}, nil
}

func (w *worker) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / w.scale)
}

// prefill returns when the first token of the prompt's answer is ready, and
// how many tokens came from the cache. A given firstToken replaces every wait.
func (w *worker) prefill(ctx context.Context, p engine.Prompt, firstToken *time.Duration) (cached int, err error) {
	if firstToken != nil {
		cached, _ = w.lookup(p)
		err = sleep(ctx, *firstToken)
	} else {
		cached, err = w.queuedPrefill(ctx, p)
	}
	if err == nil {
		w.store(p)
	}
	return cached, err
}

func (w *worker) queuedPrefill(ctx context.Context, p engine.Prompt) (cached int, err error) {
	if err := sleep(ctx, w.scaled(w.params.FrontEnd)); err != nil {
		return 0, err
	}
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-w.turn }()
	cached, d := w.lookup(p)
	w.setPrefillUntil(time.Now().Add(d))
	defer w.setPrefillUntil(time.Time{})
	return cached, sleep(ctx, d)
}

// lookup returns the cached tokens and the time that the others take.
func (w *worker) lookup(p engine.Prompt) (cached int, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cached = w.cache.Cached(p)
	return cached, w.scaled(w.params.Prefill(p.Tokens - cached))
}

func (w *worker) store(p engine.Prompt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cache.Store(p)
}

func (w *worker) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cache.Clear()
}

func (w *worker) setPrefillUntil(t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prefillUntil = t
}

// addRunning counts sequences and context tokens in or out.
func (w *worker) addRunning(sequences, tokens int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running += sequences
	w.context += tokens
}

// step returns the length of the next decode step and its earliest end.
func (w *worker) step() (d time.Duration, notBefore time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scaled(w.params.DecodeStep(w.running, w.context)), w.prefillUntil
}

// decode calls emit for each of n tokens, the first at once.
func (w *worker) decode(ctx context.Context, promptTokens, n int, token *time.Duration, emit func(i int) error) error {
	w.addRunning(1, promptTokens)
	produced := 0
	defer func() { w.addRunning(-1, -promptTokens-produced) }()
	p := pace{next: time.Now()}
	for i := range n {
		if i > 0 {
			if err := w.wait(ctx, &p, token); err != nil {
				return err
			}
		}
		if err := emit(i); err != nil {
			return err
		}
		produced++
		w.addRunning(0, 1)
	}
	return nil
}

func (w *worker) wait(ctx context.Context, p *pace, token *time.Duration) error {
	if token != nil {
		return p.sleep(ctx, *token, time.Time{})
	}
	d, notBefore := w.step()
	return p.sleep(ctx, d, notBefore)
}
