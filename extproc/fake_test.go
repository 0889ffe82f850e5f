package extproc

import (
	"context"
	"fmt"
	"io"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
)

// fakeStream is Envoy's end of a gRPC stream: it hands out messages and keeps
// what is answered to each.
type fakeStream struct {
	grpc.ServerStream
	ctx      context.Context
	messages []*extprocv3.ProcessingRequest
	end      error // what Recv returns after the last message
	sendErr  error // what Send returns
	// answered is told of each message when the next one is asked for.
	answered func(i int, answers []*extprocv3.ProcessingResponse)

	next    int  // messages handed out
	open    bool // the last of them has not been passed to answered
	answers []*extprocv3.ProcessingResponse
}

func (f *fakeStream) Context() context.Context { return f.ctx }

func (f *fakeStream) Recv() (*extprocv3.ProcessingRequest, error) {
	f.flush()
	if f.next == len(f.messages) {
		return nil, f.end
	}
	f.next, f.open = f.next+1, true
	return f.messages[f.next-1], nil
}

func (f *fakeStream) Send(r *extprocv3.ProcessingResponse) error {
	f.answers = append(f.answers, r)
	return f.sendErr
}

// flush hands the answers to the last message to answered.
func (f *fakeStream) flush() {
	if f.open && f.answered != nil {
		f.answered(f.next-1, f.answers)
	}
	f.open, f.answers = false, nil
}

// play runs messages through a server as one stream.
func play(t testing.TB, s *Server, messages ...*extprocv3.ProcessingRequest) []*extprocv3.ProcessingResponse {
	t.Helper()
	var all []*extprocv3.ProcessingResponse
	f := &fakeStream{
		ctx: t.Context(), messages: messages, end: io.EOF,
		answered: func(_ int, answers []*extprocv3.ProcessingResponse) { all = append(all, answers...) },
	}
	if err := s.Process(f); err != nil {
		t.Errorf("Process returned %v", err)
	}
	f.flush()
	return all
}

// recorder keeps what an observer is told, and panics where it is told to.
type recorder struct {
	events  []string
	records []Record
	panicIn string
}

var _ Observer = (*recorder)(nil)

func (o *recorder) event(name string, r *Record) {
	o.events = append(o.events, name)
	o.records = append(o.records, *r)
	if o.panicIn == name {
		panic("a defect in " + name)
	}
}

func (o *recorder) Decided(r *Record)            { o.event("decided", r) }
func (o *recorder) Served(r *Record)             { o.event("served", r) }
func (o *recorder) Ended(r *Record)              { o.event("ended", r) }
func (o *recorder) Panicked(r *Record, _ []byte) { o.event("panicked", r) }

// silent observes nothing.
type silent struct{}

func (silent) Decided(*Record)          {}
func (silent) Served(*Record)           {}
func (silent) Ended(*Record)            {}
func (silent) Panicked(*Record, []byte) {}

var testSettings = Settings{
	TenantHeader: "X-Tenant-Id", ComponentHeader: "X-Component", BodyLimit: 4096, InflateLimit: 4096,
	RetryConditions: []string{"connect-failure", "reset-before-request"}, RetryAttempts: 2,
}

// newRouter returns a router with n endpoints 10.0.0.1:80, 10.0.0.2:80, ...
func newRouter(t testing.TB, policy route.Policy, n int) *route.Router {
	t.Helper()
	var endpoints []fleet.Endpoint
	for i := range n {
		endpoints = append(endpoints, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i+1), Weight: 1})
	}
	set, duplicates := fleet.NewSet(endpoints)
	if len(duplicates) > 0 {
		t.Fatalf("duplicate endpoints %v", duplicates)
	}
	r := route.NewRouter(policy)
	r.SetMembership(set)
	return r
}

func prefixAware() route.Policy {
	return route.Policy{Strategy: route.PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 2}
}

// idle fails the test unless every count is zero.
func idle(t testing.TB, r *route.Router) {
	t.Helper()
	for _, c := range r.Loads().Snapshot() {
		if c.Outstanding != 0 {
			t.Errorf("%s has %d outstanding after the streams ended", c.Address, c.Outstanding)
		}
	}
}

func one() uint64 { return 1 }
