package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/internal/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakes records, in the order of the calls, what Envoy and the router were told.
type fakes struct {
	mu          sync.Mutex
	log         []string
	outstanding map[string]int64
	ackDelay    time.Duration
	joinDelay   time.Duration // how long no Envoy is connected
	ackErr      error
	publishErr  error
	published   time.Time
	statuses    []Status
}

func (f *fakes) Publish(s fleet.Set) (uint64, error) {
	f.mu.Lock()
	f.published = time.Now()
	err := f.publishErr
	f.mu.Unlock()
	if err != nil {
		return 0, err
	}
	f.note("envoy  " + describe(s))
	return 1, nil
}

func (f *fakes) Joined(ctx context.Context) error {
	if f.joinDelay == 0 {
		return nil
	}
	return wait(ctx, f.joinDelay)
}

// Acked is true ackDelay after the publication.
func (f *fakes) Acked(ctx context.Context, _ uint64) error {
	f.mu.Lock()
	left, refusal := f.ackDelay-time.Since(f.published), f.ackErr
	f.mu.Unlock()
	if refusal != nil {
		return refusal
	}
	if left > 0 {
		if err := wait(ctx, left); err != nil {
			return err
		}
	}
	f.note("acked")
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (f *fakes) SetMembership(s fleet.Set) { f.note("router " + describe(s)) }

func (f *fakes) Outstanding(address string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outstanding[address]
}

func (f *fakes) setOutstanding(address string, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outstanding[address] = n
}

func (f *fakes) note(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, line)
}

func (f *fakes) status(s Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.statuses = append(f.statuses, s)
}

func (f *fakes) lastStatus() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.statuses[len(f.statuses)-1]
}

func (f *fakes) breakBy(fault func(*fakes, error), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault(f, err)
}

func (f *fakes) said(line string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.log, line)
}

func (f *fakes) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = nil
}

// describe prints a set as its ports, with a sign for what is not healthy.
func describe(s fleet.Set) string {
	var words []string
	for _, e := range s.Endpoints() {
		word := strings.TrimPrefix(e.Address, "10.0.0.1:")
		words = append(words, word+map[fleet.State]string{fleet.Draining: "(draining)", fleet.Unhealthy: "(unhealthy)"}[e.State])
	}
	return "[" + strings.Join(words, " ") + "]"
}

func set(ports ...int) fleet.Set {
	var endpoints []fleet.Endpoint
	for _, p := range ports {
		endpoints = append(endpoints, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.1:%d", p), Weight: 1})
	}
	s, _ := fleet.NewSet(endpoints)
	return s
}

// run starts a rollout in the bubble; the returned function sends a membership
// and waits until everything is at rest.
func run(t *testing.T, f *fakes, options Options) (send func(fleet.Set)) {
	ctx, cancel := context.WithCancel(t.Context())
	updates := make(chan Membership)
	done := make(chan struct{})
	r := New(options, f, f, f.status)
	go func() {
		defer close(done)
		r.Run(ctx, updates)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return func(s fleet.Set) {
		updates <- Membership{s, s}
		synctest.Wait()
	}
}

func (f *fakes) expect(t *testing.T, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.log, want) {
		t.Errorf("told\n  %s\nwant\n  %s", strings.Join(f.log, "\n  "), strings.Join(want, "\n  "))
	}
	f.log = nil
}

func TestAddGoesToEnvoyFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{ackDelay: 30 * time.Millisecond}
		send := run(t, f, Options{})
		send(set(1))
		f.expect(t, "router []", "envoy  [1]")
		time.Sleep(30 * time.Millisecond)
		synctest.Wait()
		f.expect(t, "acked", "router [1]")
		send(set(1, 2))
		f.expect(t, "router [1]", "envoy  [1 2]")
		time.Sleep(30 * time.Millisecond)
		synctest.Wait()
		f.expect(t, "acked", "router [1 2]")
	})
}

func TestRemovalDrainsAndGoesToEnvoyLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{outstanding: map[string]int64{"10.0.0.1:2": 3}}
		send := run(t, f, Options{DrainTimeout: time.Minute})
		send(set(1, 2))
		f.forget()
		send(set(1))
		f.expect(t, "router [1 2(draining)]", "envoy  [1 2(draining)]", "acked", "router [1 2(draining)]")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		f.expect(t)
		if last := f.lastStatus(); !slices.Equal(last.Draining, []string{"10.0.0.1:2"}) {
			t.Errorf("status %+v", last)
		}
		f.setOutstanding("10.0.0.1:2", 0)
		time.Sleep(60 * time.Millisecond)
		synctest.Wait()
		f.expect(t, "router [1]", "envoy  [1]", "acked", "router [1]")
	})
}

func TestDrainEndsAtTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{outstanding: map[string]int64{"10.0.0.1:2": 3}}
		send := run(t, f, Options{DrainTimeout: time.Minute})
		send(set(1, 2))
		send(set(1))
		f.forget()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		f.expect(t)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		f.expect(t, "router [1]", "envoy  [1]", "acked", "router [1]")
	})
}

// An endpoint that comes back while it drains is a member again at once: Envoy
// knows it still.
func TestComingBackEndsTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{outstanding: map[string]int64{"10.0.0.1:2": 3}, ackDelay: time.Millisecond}
		send := run(t, f, Options{DrainTimeout: time.Minute})
		send(set(1, 2))
		time.Sleep(2 * time.Millisecond)
		send(set(1))
		time.Sleep(2 * time.Millisecond)
		f.forget()
		send(set(1, 2))
		f.expect(t, "router [1 2]", "envoy  [1 2]")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		f.expect(t, "acked", "router [1 2]")
	})
}

// A frozen Envoy holds new capacity back for AckTimeout only.
func TestAckTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{ackDelay: time.Hour}
		send := run(t, f, Options{AckTimeout: time.Second})
		send(set(1))
		f.expect(t, "router []", "envoy  [1]")
		time.Sleep(time.Second)
		synctest.Wait()
		f.expect(t, "router [1]")
		if last := f.lastStatus(); !errors.Is(last.Err, context.DeadlineExceeded) {
			t.Errorf("status error = %v", last.Err)
		}
	})
}

// An acknowledgement that comes late clears the report.
func TestLateAckClearsTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{ackDelay: 5 * time.Second}
		send := run(t, f, Options{AckTimeout: time.Second})
		send(set(1))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if last := f.lastStatus(); !errors.Is(last.Err, context.DeadlineExceeded) || !last.Routing {
			t.Errorf("before it: %+v", last)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if last := f.lastStatus(); last.Err != nil {
			t.Errorf("after it: %+v", last)
		}
	})
}

// What Envoy was not told of, or refuses, is not chosen, and is tried again.
func TestRefusedEndpointsAreNotChosen(t *testing.T) {
	for name, fault := range map[string]func(*fakes, error){
		"publish": func(f *fakes, err error) { f.publishErr = err },
		"ack":     func(f *fakes, err error) { f.ackErr = err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakes{}
				send := run(t, f, Options{})
				send(set(1))
				refused := errors.New("refused")
				f.breakBy(fault, refused)
				f.forget()
				send(set(1, 2))
				if last := f.lastStatus(); !errors.Is(last.Err, refused) {
					t.Errorf("status %+v", last)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if f.said("router [1 2]") {
					t.Error("the router was given an endpoint that Envoy does not have")
				}
				f.breakBy(fault, nil)
				time.Sleep(retryInterval + 100*time.Millisecond)
				synctest.Wait()
				if last := f.lastStatus(); last.Err != nil || !f.said("router [1 2]") {
					t.Errorf("after the mend: %+v", last)
				}
			})
		})
	}
}

// A process that has just started waits for the Envoys that run already: they
// have the membership of the process before it.
func TestFirstMembershipWaitsForAnEnvoy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{joinDelay: 700 * time.Millisecond, ackDelay: 800 * time.Millisecond}
		send := run(t, f, Options{})
		send(set(1))
		time.Sleep(750 * time.Millisecond)
		synctest.Wait()
		f.expect(t, "router []", "envoy  [1]")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		f.expect(t, "acked", "router [1]")
	})
}

// Without any Envoy it does not wait for ever.
func TestFirstMembershipWithoutEnvoy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{joinDelay: time.Hour}
		send := run(t, f, Options{AckTimeout: time.Second})
		send(set(1))
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		f.expect(t, "router []", "envoy  [1]", "router [1]")
		if last := f.lastStatus(); last.Err != nil || !last.Routing {
			t.Errorf("status %+v", last)
		}
	})
}

// Further changes do not put the end of a drain off.
func TestDrainUnderRepeatedUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{outstanding: map[string]int64{"10.0.0.1:2": 3}}
		send := run(t, f, Options{DrainTimeout: time.Minute})
		send(set(1, 2))
		send(set(1))
		for i := range 5 {
			time.Sleep(11 * time.Second)
			send(set(1, 3+i))
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if last := f.lastStatus(); slices.Contains(last.Draining, "10.0.0.1:2") {
			t.Errorf("61 s after it left: %+v", last)
		}
	})
}

// Without a control plane of ours the router follows alone.
func TestWithoutControlPlane(t *testing.T) {
	f := &fakes{}
	r := New(Options{}, nil, f, nil)
	r.merge(Membership{set(1, 2), set(1, 2)}, time.Now())
	r.apply(t.Context())
	f.expect(t, "router []", "router [1 2]")
}

// A state in the source is passed on to both.
func TestStatesArePassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		send := run(t, f, Options{})
		send(set(1, 2))
		f.forget()
		endpoints := set(1, 2).Endpoints()
		endpoints[0].State, endpoints[1].State = fleet.Draining, fleet.Unhealthy
		changed, _ := fleet.NewSet(endpoints)
		send(changed)
		want := "[1(draining) 2(unhealthy)]"
		f.expect(t, "router "+want, "envoy  "+want, "acked", "router "+want)
	})
}

// Weights that rise in a slow start are the router's alone.
func TestRouterAndEnvoyMayDiffer(t *testing.T) {
	f := &fakes{}
	r := New(Options{}, f, f, nil)
	endpoints := set(1, 2).Endpoints()
	endpoints[1].State = fleet.Unhealthy
	other, _ := fleet.NewSet(endpoints)
	r.merge(Membership{Router: other, Envoy: set(1, 2)}, time.Now())
	r.apply(t.Context())
	f.expect(t, "router []", "envoy  [1 2]", "acked", "router [1 2(unhealthy)]")
}
