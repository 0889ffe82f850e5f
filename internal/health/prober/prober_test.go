package prober

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/health"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engines are the fake endpoints of a pool, as a transport.
type engines struct {
	mu      sync.Mutex
	begin   time.Time
	status  map[string]int           // 200 where not said; 0 hangs, -1 refuses
	delay   map[string]time.Duration // before the answer
	probes  []seen
	running int
	most    int // running at once
	ended   int // by their context
}

type seen struct {
	address string
	at      time.Duration
}

func newEngines() *engines {
	return &engines{begin: time.Now(), status: make(map[string]int), delay: make(map[string]time.Duration)}
}

func (e *engines) set(address string, status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status[address] = status
}

// of returns the times of the probes of an address.
func (e *engines) of(address string) (times []time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.probes {
		if s.address == address {
			times = append(times, s.at)
		}
	}
	return times
}

func (e *engines) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	status, known := e.status[r.URL.Host]
	if !known {
		status = http.StatusOK
	}
	delay := e.delay[r.URL.Host]
	e.probes = append(e.probes, seen{r.URL.Host, time.Since(e.begin)})
	e.running++
	e.most = max(e.most, e.running)
	e.mu.Unlock()
	err := e.wait(r.Context(), status, delay)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	if err != nil {
		e.ended++
		return nil, err
	}
	if status < 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(nil))}, nil
}

func (e *engines) wait(ctx context.Context, status int, delay time.Duration) error {
	answer := time.After(delay)
	if status == 0 {
		answer = nil
	}
	select {
	case <-answer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pool is a prober that runs in a bubble, and what it reported.
type pool struct {
	*Prober
	*engines
	mu      sync.Mutex
	reports []report
	stop    func()
}

type report struct {
	set  fleet.Set
	view health.View
	at   time.Duration
}

func start(t *testing.T, change func(*Options)) *pool {
	p := &pool{engines: newEngines()}
	o := Defaults()
	o.Transport = p.engines
	if change != nil {
		change(&o)
	}
	var err error
	p.Prober, err = New(o, func(set fleet.Set, v health.View) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reports = append(p.reports, report{set, v, time.Since(p.begin)})
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	p.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(p.stop)
	return p
}

func (p *pool) take() []report {
	p.mu.Lock()
	defer p.mu.Unlock()
	reports := p.reports
	p.reports = nil
	return reports
}

// states prints the view as the first letters of the states.
func (p *pool) states() string { return letters(p.View()) }

func letters(v health.View) string {
	var b strings.Builder
	for _, e := range v.Endpoints {
		b.WriteByte(e.State.String()[0])
	}
	return b.String() + []string{health.Calm: "", health.Panicking: "!", health.Settling: "?"}[v.Panic]
}

func (p *pool) expect(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if got := p.states(); got != want {
		t.Errorf("after %v: states %s, want %s", time.Since(p.begin), got, want)
	}
}

func address(i int) string { return fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1) }

func members(n int) fleet.Set {
	endpoints := make([]fleet.Endpoint, n)
	for i := range endpoints {
		endpoints[i] = fleet.Endpoint{Address: address(i), Weight: 1}
	}
	set, _ := fleet.NewSet(endpoints)
	return set
}

func TestProbesMoveTheStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		p.set(address(0), 503)
		p.set(address(1), -1)
		p.SetMembers(members(3))
		p.expect(t, "hhh")
		time.Sleep(4 * time.Second)
		p.expect(t, "uuh")
		for i, want := range []string{"status 503", "connection refused"} {
			if e, _ := p.View().Find(address(i)); !strings.Contains(e.Cause, want) {
				t.Errorf("cause %q, want %q in it", e.Cause, want)
			}
		}
		p.set(address(0), 204)
		time.Sleep(3 * time.Second)
		p.expect(t, "huh")
		p.set(address(0), 404)
		p.set(address(2), 302)
		time.Sleep(4 * time.Second)
		p.expect(t, "uuu!")
	})
}

// An endpoint that takes the connection and says nothing is out after three
// timeouts, although each takes longer than the interval.
func TestHangIsFoundInThreeTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(o *Options) { o.Timeout = 1500 * time.Millisecond })
		p.set(address(0), 0)
		p.SetMembers(members(2))
		time.Sleep(6 * time.Second)
		p.expect(t, "uh")
		e, _ := p.View().Find(address(0))
		if !strings.Contains(e.Cause, "no answer in 1.5s") {
			t.Errorf("cause %q", e.Cause)
		}
		if first := p.of(address(0))[0]; e.Since.Sub(p.begin) != first+4500*time.Millisecond {
			t.Errorf("found after %v, first probe at %v", e.Since.Sub(p.begin), first)
		}
	})
}

func TestNewMemberIsProbedAtOnceAndRises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		p.SetMembers(members(2))
		time.Sleep(10*time.Second + 7*time.Millisecond)
		p.set(address(2), 503) // it loads its model
		p.SetMembers(members(3))
		p.expect(t, "hhs")
		time.Sleep(5 * time.Minute)
		p.expect(t, "hhs")
		if joined := p.of(address(2))[0]; joined != 10*time.Second+7*time.Millisecond {
			t.Errorf("first probe at %v", joined)
		}
		p.take()
		p.set(address(2), 200)
		time.Sleep(40 * time.Second)
		p.expect(t, "hhh")
		var factors []string
		for _, r := range p.take() {
			e, _ := r.view.Find(address(2))
			factors = append(factors, fmt.Sprintf("%.2f", e.Factor))
		}
		if got := strings.Join(factors, " "); got != "0.10 0.19 0.28 0.37 0.46 0.55 0.64 0.73 0.82 0.91 1.00" {
			t.Errorf("factors %s", got)
		}
	})
}

// Each endpoint has one probe in every interval, and the probes of a pool that
// came at once are spread over it.
func TestProbesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, seconds = 200, 10
		p := start(t, nil)
		p.SetMembers(members(n))
		time.Sleep(seconds*time.Second - time.Millisecond)
		p.stop()
		buckets := make(map[time.Duration]int)
		for i := range n {
			times := p.of(address(i))
			if len(times) != seconds {
				t.Fatalf("%d probes of %s, want %d", len(times), address(i), seconds)
			}
			for j, at := range times {
				if at-times[0] != time.Duration(j)*time.Second {
					t.Errorf("probe %d of %s at %v, the first at %v", j, address(i), at, times[0])
				}
			}
			buckets[times[0]/(100*time.Millisecond)]++
		}
		for b, count := range buckets {
			if count > 35 {
				t.Errorf("%d of %d probes in the tenth %d of the interval", count, n, b)
			}
		}
	})
}

func TestNeverMoreAtOnceThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		p := start(t, func(o *Options) { o.Concurrency = 8 })
		for i := range n {
			p.set(address(i), 0)
		}
		p.SetMembers(members(n))
		time.Sleep(n / 8 * 2 * time.Second)
		synctest.Wait()
		if p.most != 8 {
			t.Errorf("%d at once, want 8", p.most)
		}
		for i := range n { // none starves
			if probes := len(p.of(address(i))); probes < 1 || probes > 3 {
				t.Errorf("%d probes of endpoint %d", probes, i)
			}
		}
	})
}

// A probe in flight for a member that leaves is cancelled, its result does not
// count for one that comes in its place, and what is no member is not probed.
func TestLeavingDuringAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(o *Options) { o.Timeout = time.Minute; o.Health.FailedProbes = 1 })
		p.set(address(1), 0)
		p.SetMembers(members(3))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		hanging, waiting := len(p.of(address(1))), len(p.of(address(2)))
		p.SetMembers(members(1))
		synctest.Wait()
		if p.ended != 1 {
			t.Errorf("%d probes cancelled, want 1", p.ended)
		}
		time.Sleep(10 * time.Second)
		p.expect(t, "h")
		if h, w := len(p.of(address(1))), len(p.of(address(2))); h != hanging || w != waiting {
			t.Errorf("%d and %d probes of addresses that are no members", h-hanging, w-waiting)
		}
		p.SetMembers(members(2))
		p.expect(t, "hs")
		p.SetMembers(members(1))
		p.SetMembers(members(2)) // a probe of the first still runs
		p.expect(t, "hs")
		p.set(address(1), 200)
		p.SetMembers(members(1))
		synctest.Wait()
		p.SetMembers(members(2))
		p.expect(t, "hs") // reported within the publish interval
		time.Sleep(publishInterval)
		p.expect(t, "hh")
	})
}

func TestFailedRequestsEject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		p.SetMembers(members(4))
		time.Sleep(5 * time.Second)
		p.take()
		for range 5 {
			p.Report(address(0), health.Unreachable)
			p.Report(address(1), health.ServerError)
			p.Report(address(1), health.Answered)
			p.Report("10.9.9.9:1", health.Unreachable)
		}
		time.Sleep(collectDelay)
		p.expect(t, "uhhh")
		if n := len(p.take()); n != 1 {
			t.Errorf("%d reports", n)
		}
		time.Sleep(2 * time.Second)
		p.expect(t, "hhhh")
		p.Report(address(0), health.Unreachable)
		time.Sleep(collectDelay)
		p.expect(t, "hhhh")
	})
}

func TestWithoutProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(o *Options) { o.Health.Probing = false })
		p.SetMembers(members(2))
		for range 5 {
			p.Report(address(0), health.Unreachable)
		}
		p.expect(t, "hh") // reports before the membership was taken over are lost
		for range 5 {
			p.Report(address(0), health.Unreachable)
		}
		time.Sleep(100 * time.Millisecond)
		p.expect(t, "uh")
		time.Sleep(9800 * time.Millisecond)
		p.expect(t, "uh")
		time.Sleep(200 * time.Millisecond)
		p.expect(t, "hh")
		if len(p.probes) != 0 {
			t.Errorf("%d probes", len(p.probes))
		}
	})
}

// A thousand endpoints that become ready together make a few reports, with the
// newest membership in each.
func TestManyChangesMakeFewReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		for i := range 1000 {
			p.delay[address(i)] = time.Duration(i%20) * time.Millisecond
		}
		p.SetMembers(members(1))
		time.Sleep(time.Second)
		p.take()
		p.SetMembers(members(1000))
		time.Sleep(2 * time.Second)
		p.expect(t, strings.Repeat("h", 1000))
		reports := p.take()
		if len(reports) > 2*int(time.Second/publishInterval) {
			t.Errorf("%d reports", len(reports))
		}
		for i, r := range reports {
			if r.set.Len() != 1000 || len(r.view.Endpoints) != 1000 {
				t.Errorf("report %d has %d members, %d judged", i, r.set.Len(), len(r.view.Endpoints))
			}
			if i > 0 && r.at-reports[i-1].at < publishInterval {
				t.Errorf("reports at %v and %v", reports[i-1].at, r.at)
			}
		}
	})
}

// Each membership is reported, also one in which only a weight is another.
func TestEveryMembershipIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		set := members(2)
		p.SetMembers(set)
		synctest.Wait()
		endpoints := set.Endpoints()
		endpoints[0].Weight = 5
		heavier, _ := fleet.NewSet(endpoints)
		p.SetMembers(heavier)
		synctest.Wait()
		p.SetMembers(fleet.Set{})
		synctest.Wait()
		reports := p.take()
		if len(reports) != 3 || !reports[1].set.Equal(heavier) || reports[2].set.Len() != 0 {
			t.Errorf("reports %+v", reports)
		}
		p.SetMembers(set) // they are not the first ones any more, and answer at once
		synctest.Wait()
		if reports = p.take(); len(reports) != 1 || letters(reports[0].view) != "ss!" {
			t.Errorf("reports %+v", reports)
		}
		time.Sleep(publishInterval)
		p.expect(t, "hh")
	})
}

// Run ends while probes hang, and waits for them.
func TestRunEndsWithProbesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(o *Options) { o.Timeout = time.Hour })
		for i := range 10 {
			p.set(address(i), 0)
		}
		p.SetMembers(members(10))
		time.Sleep(time.Second)
		p.stop()
		if p.running != 0 || p.ended != 10 {
			t.Errorf("%d run, %d ended; want 0 and 10", p.running, p.ended)
		}
	})
}

// An endpoint that flaps changes its state a bounded number of times, and the
// others not at all.
func TestFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		p.SetMembers(members(3))
		for i := range 240 { // good and bad in turn, then in runs of two and five
			run := []int{1, 2, 5}[i/80]
			p.set(address(0), map[bool]int{true: 200, false: 500}[i/run%2 == 0])
			time.Sleep(time.Second)
		}
		synctest.Wait()
		changes, last := 0, health.Healthy
		for _, r := range p.take() {
			if e, _ := r.view.Find(address(0)); e.State != last {
				changes, last = changes+1, e.State
				if r.at < 160*time.Second {
					t.Errorf("%v at %v", last, r.at)
				}
			}
			if letters(r.view)[1:] != "hh" {
				t.Errorf("%s at %v", letters(r.view), r.at)
			}
		}
		if changes < 10 || changes > 16 {
			t.Errorf("%d changes in 80 s of five good and five bad ones", changes)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	o := Options{Path: "health", Concurrency: 20_000, MinStatus: 300, MaxStatus: 200}
	_, err := New(o, nil)
	for _, want := range []string{`path "health"`, "interval 0s", "timeout 0s", "concurrency 20000", "statuses 300..200", "failed probes 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	o = Defaults()
	o.Path = "/he alth\x7f"
	if _, err := New(o, nil); err == nil {
		t.Errorf("path %q was taken", o.Path)
	}
}

func TestReportDoesNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		p.SetMembers(members(2))
		synctest.Wait()
		a := address(0)
		if n := testing.AllocsPerRun(100, func() { p.Report(a, health.Answered) }); n != 0 {
			t.Errorf("%v allocations a report", n)
		}
	})
}
