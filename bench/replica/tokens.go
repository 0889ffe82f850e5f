package replica

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// tokens are one answer as its tokens come: from the engine, or at the times that
// control headers ask for. end must be called in any case.
//
// The engine does not wait for a client that reads slowly or a response that is
// held; timed tokens do.
type tokens struct {
	worker *worker
	// prompt has the length of the prompt, and blocks that go on into the answer.
	prompt engine.Prompt
	output int
	// firstToken and token replace front end, queue and prefill, and the decode
	// step, if not nil.
	firstToken, token *time.Duration

	job   *job // nil as long as the engine has no part in it
	timed bool // counted in worker.timed
	sent  int  // timed tokens
	next  time.Time
}

// first waits for the first token and returns how many of the prompt's tokens
// came from the cache.
func (t *tokens) first(ctx context.Context) (cached int, err error) {
	if t.firstToken != nil {
		return t.timedFirst(ctx)
	}
	if err := sleep(ctx, t.worker.frontEnd()); err != nil {
		return 0, err
	}
	inEngine := t.output
	if t.token != nil {
		inEngine = 1
	}
	t.job, err = t.worker.submit(engine.Request{
		PromptTokens: max(t.prompt.Tokens, 1), OutputTokens: inEngine, Blocks: t.prompt.Blocks,
	})
	if err != nil {
		return 0, err
	}
	if err := t.job.wait(ctx, 1); err != nil {
		return 0, err
	}
	if t.token != nil {
		t.worker.enter(t)
		t.next = time.Now()
	}
	return t.job.request.Cached(), nil
}

func (t *tokens) timedFirst(ctx context.Context) (cached int, err error) {
	t.worker.enter(t)
	cached = t.worker.lookup(t.prompt)
	if err := sleep(ctx, *t.firstToken); err != nil {
		return 0, err
	}
	t.worker.prefilled(t.prompt)
	t.next = time.Now()
	t.count()
	return cached, nil
}

// wait returns when token i, from 0, is there.
func (t *tokens) wait(ctx context.Context, i int) error {
	switch {
	case i == 0:
		return nil // first has waited for it
	case t.token != nil:
		t.next = t.next.Add(*t.token)
	case t.firstToken != nil:
		t.next = t.next.Add(t.worker.decodeStep(t.prompt.Tokens + t.sent))
	default:
		return t.job.wait(ctx, i+1)
	}
	// From deadline to deadline, so that late wake-ups do not add up.
	if err := sleep(ctx, time.Until(t.next)); err != nil {
		return err
	}
	t.count()
	return nil
}

func (t *tokens) count() {
	t.sent++
	t.worker.generated()
}

// done leaves prompt and answer in the cache.
func (t *tokens) done() {
	if t.timed {
		t.worker.store(engine.Prompt{Tokens: t.prompt.Tokens + t.output, Blocks: t.prompt.Blocks})
	}
}

// end leaves the engine.
func (t *tokens) end() {
	if t.job != nil {
		t.worker.cancel(t.job)
	}
	t.worker.leave(t)
}

// wait returns when there are n tokens.
func (j *job) wait(ctx context.Context, n int) error {
	for j.tokens.Load() < int64(n) {
		select {
		case <-j.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
