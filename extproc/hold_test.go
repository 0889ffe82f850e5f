package extproc

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
)

// slowStream hands out messages when they are sent to it.
type slowStream struct {
	grpc.ServerStream
	ctx      context.Context
	messages chan *extprocv3.ProcessingRequest
	answers  chan *extprocv3.ProcessingResponse
}

func (s *slowStream) Context() context.Context { return s.ctx }

func (s *slowStream) Recv() (*extprocv3.ProcessingRequest, error) {
	select {
	case m, ok := <-s.messages:
		if ok {
			return m, nil
		}
		return nil, io.EOF
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *slowStream) Send(r *extprocv3.ProcessingResponse) error {
	s.answers <- r
	return nil
}

// A client sends the beginning of its body and pauses. Envoy's timeout runs, so
// the answer to the headers does not wait for the rest; what came is answered
// with it, and the rest as it comes.
func TestHoldEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &slowStream{ctx: ctx, messages: make(chan *extprocv3.ProcessingRequest), answers: make(chan *extprocv3.ProcessingResponse, 8)}
		done := make(chan error)
		server := New(newRouter(t, prefixAware(), 3), testSettings, silent{}, one)
		go func() { done <- server.Process(s) }()
		s.messages <- message(t, "headers :method=POST :path=/v1/chat/completions content-type=application/json content-length=60 mode:STREAMED nowait")
		s.messages <- message(t, `body more {"model":"m","messages":[{"role":"user",`)
		time.Sleep(holdTime - time.Millisecond)
		synctest.Wait()
		if n := len(s.answers); n != 0 {
			t.Errorf("%d answers before the time is over", n)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if n := len(s.answers); n != 2 {
			t.Fatalf("%d answers when it is over, want those to the headers and the part", n)
		}
		if header, _, _ := destination(<-s.answers); header == "" {
			t.Error("the answer names no endpoint")
		}
		<-s.answers
		s.messages <- message(t, `body eos "content":"Hello"}]}`)
		synctest.Wait()
		if n := len(s.answers); n != 1 {
			t.Errorf("%d answers to the rest", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		idle(t, server.pools.Load().fallback.Router)
	})
}

func message(t *testing.T, line string) *extprocv3.ProcessingRequest {
	t.Helper()
	m, err := parseMessage(line)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
