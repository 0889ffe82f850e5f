package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// selectFormat chooses the wire format of a request; nil means unknown path.
type selectFormat func(h http.Header, body []byte) format

// errClientGone is a read or a write that failed.
var errClientGone = errors.New("client has left")

// serve counts a request in and out, whatever happens in between, and answers.
func (r *Replica) serve(choose selectFormat) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		aborted := false
		var record *Record
		began := r.counters.begin()
		defer func() { r.counters.end(record, aborted) }()
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
		record = newRecord(req, began, body, err)
		r.counters.addRecord(record)
		if err == nil {
			err = r.answer(w, req, body, choose)
		} else {
			err = unreadable(err)
		}
		var refused *apiError
		if errors.As(err, &refused) {
			refused.write(w)
		} else {
			aborted = err != nil
		}
	}
}

// answer returns an *apiError to be sent, or another error when the client has
// left.
func (r *Replica) answer(w http.ResponseWriter, req *http.Request, body []byte, choose selectFormat) error {
	if choose == nil {
		return unknownPath(req)
	}
	if err := r.faults.suffer(req.Context(), false); err != nil {
		return err
	}
	control, err := parseControl(req.Header)
	if err != nil {
		return badRequest(err)
	}
	if err := sleep(req.Context(), control.Delay); err != nil {
		return err
	}
	if control.Reset == resetBefore {
		panic(http.ErrAbortHandler)
	}
	if control.Status != 0 {
		return requestedStatus(control.Status)
	}
	f := choose(req.Header, body)
	parsed, err := f.parse(body)
	if err != nil {
		return badRequest(err)
	}
	if !r.servesModel(parsed.model) {
		return unknownModel(parsed.model)
	}
	g := r.newGeneration(f, parsed, control)
	if err := g.check(); err != nil {
		return err
	}
	defer g.leave()
	switch {
	case eventStreamPath(req):
		return g.stream(req.Context(), newEventWriter(w, eventStreamType, payloadPart))
	case parsed.stream:
		return g.stream(req.Context(), newEventWriter(w, "text/event-stream; charset=utf-8", nil))
	}
	return g.whole(req.Context(), w)
}

// generation is one answer in the making.
type generation struct {
	replica *Replica
	format  format
	control Control
	answer  answer
	tokens  tokens
	metrics requestMetrics
	// released is closed by a release since the request came.
	released <-chan struct{}
}

func (r *Replica) newGeneration(f format, q request, c Control) *generation {
	n := r.outputTokens(q, c)
	prompt := engine.NewPrompt(r.params.Engine.BlockTokens, q.prompt+text(n), q.model, q.salt)
	prompt.Tokens = engine.Tokens(q.prompt)
	return &generation{
		replica: r, format: f, control: c, metrics: r.metrics.track(), released: r.released(),
		answer: answer{
			id: fmt.Sprintf("%016x", r.answers.Add(1)), model: q.model, created: time.Now().Unix(),
			promptTokens: prompt.Tokens, tokens: n,
			limited: q.outputTokens > 0 && c.Tokens == 0, includeUsage: q.includeUsage,
		},
		tokens: tokens{worker: r.worker, prompt: prompt, output: n, firstToken: c.FirstToken, token: c.Token},
	}
}

// check refuses what the engine could never run.
func (g *generation) check() error {
	want, limit := g.answer.promptTokens+g.answer.tokens, g.replica.worker.capacity()
	if g.control.FirstToken == nil && want > limit {
		return tooLong(want, limit)
	}
	return nil
}

func (r *Replica) outputTokens(q request, c Control) int {
	switch {
	case c.Tokens > 0:
		return c.Tokens
	case q.outputTokens > 0:
		return min(q.outputTokens, maxControlTokens)
	default:
		return r.params.OutputTokens
	}
}

func (g *generation) prefill(ctx context.Context) error {
	cached, err := g.tokens.first(ctx)
	if err != nil {
		return err
	}
	g.answer.cachedTokens = cached
	g.metrics.first()
	g.replica.counters.addPrompt(g.answer.promptTokens, cached)
	return nil
}

// decode calls emit for each token, the first at once.
func (g *generation) decode(ctx context.Context, emit func(i int) error) error {
	for i := range g.answer.tokens {
		if err := g.tokens.wait(ctx, i); err != nil {
			return err
		}
		g.replica.counters.addCompletion(1)
		if err := emit(i); err != nil {
			return err
		}
	}
	g.tokens.done()
	g.metrics.end(g.answer.finish())
	return nil
}

// leave is called when the handler returns, whatever the reason.
func (g *generation) leave() {
	g.tokens.end()
	g.metrics.end(aborted)
}

// hold waits for a release when the request asked for it: any since the request came, as
// the client may know of the response before it is held.
func (g *generation) hold(ctx context.Context) error {
	if !g.control.Hold {
		return nil
	}
	g.replica.counters.addHeld(1)
	defer g.replica.counters.addHeld(-1)
	select {
	case <-g.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
