package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// whole answers in one piece, after the last token.
func (g *generation) whole(ctx context.Context, w http.ResponseWriter) error {
	if err := g.prefill(ctx); err != nil {
		return err
	}
	if err := g.decode(ctx, func(int) error { return nil }); err != nil {
		return err
	}
	if err := g.hold(ctx); err != nil {
		return err
	}
	if g.control.Reset == resetMid {
		return cutShort(w, g.format.plain(g.answer))
	}
	writeJSON(w, http.StatusOK, g.format.plain(g.answer))
	return nil
}

// cutShort promises a whole body, sends half of it and drops the connection.
func cutShort(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("content-type", "application/json")
	w.Header().Set("content-length", strconv.Itoa(len(body)))
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// stream answers token by token as server-sent events. The headers go out at
// once, as vLLM sends them: their time says nothing about the first token.
func (g *generation) stream(ctx context.Context, s *eventWriter) error {
	if err := s.write(g.format.opening(g.answer)); err != nil {
		return err
	}
	if err := g.prefill(ctx); err != nil {
		return err
	}
	err := g.decode(ctx, func(i int) error { return g.streamToken(ctx, s, i) })
	if err != nil {
		return err
	}
	return s.write(g.format.last(g.answer))
}

func (g *generation) streamToken(ctx context.Context, s *eventWriter, i int) error {
	if g.control.Reset == resetMid && i == g.answer.tokens/2 {
		panic(http.ErrAbortHandler)
	}
	var events []event
	if i == 0 {
		events = g.format.first(g.answer)
	}
	if err := s.write(append(events, g.format.token(g.answer, i)...)); err != nil {
		return err
	}
	if i == 0 {
		return g.hold(ctx)
	}
	return nil
}

// eventWriter writes server-sent events, each group flushed at once.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	wrap    func([]byte) []byte // an outer encoding, or nil
}

// newEventWriter sends the response headers.
func newEventWriter(w http.ResponseWriter, contentType string, wrap func([]byte) []byte) *eventWriter {
	w.Header().Set("content-type", contentType)
	w.Header().Set("cache-control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return &eventWriter{w: w, control: http.NewResponseController(w), wrap: wrap}
}

func (s *eventWriter) write(events []event) error {
	for _, e := range events {
		frame, err := e.frame()
		if err != nil {
			return err
		}
		if s.wrap != nil {
			frame = s.wrap(frame)
		}
		if _, err := s.w.Write(frame); err != nil {
			return errClientGone
		}
	}
	if err := s.control.Flush(); err != nil {
		return errClientGone
	}
	return nil
}

func (e event) frame() ([]byte, error) {
	var frame []byte
	if e.name != "" {
		frame = append(frame, "event: "+e.name+"\n"...)
	}
	frame = append(frame, "data: "...)
	if raw, ok := e.data.(rawData); ok {
		return append(frame, string(raw)+"\n\n"...), nil
	}
	data, err := json.Marshal(e.data)
	if err != nil {
		return nil, fmt.Errorf("event %q: %w", e.name, err)
	}
	frame = append(frame, data...)
	return append(frame, "\n\n"...), nil
}
