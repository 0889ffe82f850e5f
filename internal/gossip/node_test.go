package gossip

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/internal/gossip/merge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeFleet is a process's endpoints.
type fakeFleet struct {
	mu          sync.Mutex
	outstanding map[string]int64
	given       map[string]time.Duration
	placed      map[string][]uint64

	others     map[string]int64
	work       map[string]time.Duration
	heardOf    map[string][]uint64
	routers    int
	hearsOther bool
}

func newFake(addresses ...string) *fakeFleet {
	f := &fakeFleet{
		outstanding: map[string]int64{}, given: map[string]time.Duration{}, placed: map[string][]uint64{},
		others: map[string]int64{}, work: map[string]time.Duration{}, heardOf: map[string][]uint64{},
	}
	for _, a := range addresses {
		f.outstanding[a] = 0
	}
	return f
}

func (f *fakeFleet) Endpoints(each func(string, int64, time.Duration)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for a, n := range f.outstanding {
		each(a, n, f.given[a])
	}
}

func (f *fakeFleet) Placed(each func(string, []uint64)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for a, levels := range f.placed {
		each(a, levels)
	}
	clear(f.placed)
}

func (f *fakeFleet) SetOthers(of func(string) int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for a := range f.outstanding {
		f.others[a] = of(a)
	}
}

func (f *fakeFleet) GiveElsewhere(address string, work time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.work[address] += work
}

func (f *fakeFleet) PlaceElsewhere(address string, levels []uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heardOf[address] = append(f.heardOf[address], levels...)
}

func (f *fakeFleet) SetRouters(n int, heard bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.routers, f.hearsOther = n, heard
}

// do changes or reads the fleet.
func (f *fakeFleet) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// started is a node that runs, and ends with the test or by stop.
type started struct {
	*Node
	stop func()
}

func start(t *testing.T, router uint64, fleet Fleet, key []byte, join ...string) started {
	t.Helper()
	n, err := Start(Options{
		Listen: "127.0.0.1:0", Join: join, Router: router, Fleet: fleet, Key: key,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := n.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	s := started{n, func() { cancel(); <-done }}
	t.Cleanup(s.stop)
	return s
}

// eventually polls until ok says nothing more.
func eventually(t *testing.T, what string, ok func() string) {
	t.Helper()
	deadline, ticker := time.Now().Add(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer ticker.Stop()
	for {
		problem := ok()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, problem)
		}
		<-ticker.C
	}
}

// Two processes hear of each other's requests, work and placements, of the endpoints
// that both have; who ends counts no more at once.
func TestTwoNodes(t *testing.T) {
	a, b := newFake("10.0.0.1:80", "10.0.0.2:80"), newFake("10.0.0.1:80", "10.0.0.3:80")
	first := start(t, 1, a, nil)
	second := start(t, 2, b, nil, first.Address())
	hears := func(f *fakeFleet, n int) func() string {
		return func() (problem string) {
			f.do(func() {
				if f.routers != n || f.hearsOther != (n > 1) {
					problem = fmt.Sprintf("%d routers, others heard %v", f.routers, f.hearsOther)
				}
			})
			return problem
		}
	}
	eventually(t, "a hears b", hears(a, 2))
	eventually(t, "b hears a", hears(b, 2))
	a.do(func() {
		a.outstanding["10.0.0.1:80"], a.outstanding["10.0.0.2:80"] = 3, 5
		a.given["10.0.0.1:80"] = 70 * time.Millisecond
		a.placed["10.0.0.1:80"] = []uint64{4, 5}
	})
	eventually(t, "b knows", func() (problem string) {
		b.do(func() {
			if b.others["10.0.0.1:80"] != 3 || b.others["10.0.0.3:80"] != 0 || len(b.heardOf["10.0.0.1:80"]) != 2 {
				problem = fmt.Sprintf("%v, %v", b.others, b.heardOf)
			}
		})
		return problem
	})
	second.stop()
	eventually(t, "a is alone", hears(a, 1))
	if peers := first.Peers(); len(peers) != 0 {
		t.Errorf("a still knows %+v", peers)
	}
}

// With another key nobody is heard.
func TestKeys(t *testing.T) {
	a, b, c := newFake("10.0.0.1:80"), newFake("10.0.0.1:80"), newFake("10.0.0.1:80")
	first := start(t, 1, a, bytes.Repeat([]byte{1}, 32))
	start(t, 2, b, bytes.Repeat([]byte{2}, 32), first.Address())
	third := start(t, 3, c, bytes.Repeat([]byte{1}, 32), first.Address())
	eventually(t, "the one with the key", func() string {
		if peers := third.Peers(); len(peers) != 1 || peers[0].Router != 1 {
			return fmt.Sprint(peers)
		}
		return ""
	})
	for _, p := range first.Peers() {
		if p.Router == 2 {
			t.Error("heard without the key")
		}
	}
}

func TestStartRefuses(t *testing.T) {
	for _, o := range []Options{
		{Listen: "nowhere"},
		{Listen: "127.0.0.1:0", Advertise: "nowhere"},
		{Listen: "127.0.0.1:0", Key: []byte("short")},
		{Listen: "192.0.2.1:1"},
	} {
		o.Log, o.Router, o.Fleet = slog.New(slog.NewTextHandler(io.Discard, nil)), 1, newFake()
		if n, err := Start(o); err == nil {
			t.Errorf("%+v started", o)
			_ = n.leave()
		}
	}
}

// What is told: all at first and every second if it is not idle, what has changed
// twice, and always something.
func TestTeller(t *testing.T) {
	f, teller := newFake("a", "b"), newTeller(9)
	round := func(now time.Duration) map[uint64]int64 {
		told := map[uint64]int64{}
		messages := teller.round(now, f)
		if len(messages) == 0 {
			t.Error("silence")
		}
		for _, m := range messages {
			for _, e := range m.Endpoints {
				told[e.Key] = e.Outstanding
			}
		}
		return told
	}
	a := merge.Key("a")
	if got := round(0); len(got) != 0 {
		t.Errorf("idle: %v", got)
	}
	f.outstanding["a"] = 2
	for i, want := range []int{1, 1, 0} {
		if got := round(time.Duration(i+1) * tellEvery); len(got) != want || want > 0 && got[a] != 2 {
			t.Errorf("round %d: %v", i, got)
		}
	}
	if got := round(tellAllEvery); got[a] != 2 {
		t.Errorf("after a second: %v", got)
	}
	f.outstanding["a"] = 0
	for i, want := range []int{1, 1, 0} {
		if got := round(tellAllEvery + time.Duration(i+1)*tellEvery); len(got) != want {
			t.Errorf("idle again, round %d: %v", i, got)
		}
	}
	delete(f.outstanding, "a")
	round(tellAllEvery + 4*tellEvery)
	if keys, changed := teller.members(); !changed || len(keys) != 1 || len(teller.told) != 1 {
		t.Errorf("a is gone: %v %v", keys, changed)
	}
}

// Many endpoints and placements are several messages.
func TestTellerCuts(t *testing.T) {
	f, teller := newFake(), newTeller(9)
	for i := range 3 * perMessage {
		f.outstanding[fmt.Sprint(i)] = 1
		f.placed[fmt.Sprint(i)] = make([]uint64, 50)
	}
	endpoints, placements, last := 0, 0, uint64(0)
	for _, m := range teller.round(0, f) {
		if m.Sequence <= last || m.Router != 9 || len(m.Endpoints) > perMessage || len(must(encode(m, 0))) > 1350 {
			t.Errorf("message %d of %d: %d endpoints, %d bytes", m.Sequence, last, len(m.Endpoints), len(must(encode(m, 0))))
		}
		last, endpoints, placements = m.Sequence, endpoints+len(m.Endpoints), placements+len(m.Placements)
	}
	if endpoints != 3*perMessage || placements != 3*perMessage {
		t.Errorf("%d endpoints and %d placements of %d", endpoints, placements, 3*perMessage)
	}
}

// A wrong key fills no log.
func TestWarningsAreFew(t *testing.T) {
	var out bytes.Buffer
	l := &lines{to: slog.New(slog.NewTextHandler(&out, nil))}
	for range 50 {
		fmt.Fprintf(l, "[ERR] memberlist: %s\n", bytes.Repeat([]byte("x"), 4000))
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != warnings || out.Len() > warnings*500 {
		t.Errorf("%d lines of %d bytes", n, out.Len())
	}
	out.Reset()
	l = &lines{to: slog.New(slog.NewTextHandler(&out, nil))}
	l.hush()
	fmt.Fprintln(l, "[ERR] memberlist: closed")
	if out.Len() > 0 {
		t.Errorf("at the end: %s", &out)
	}
}
