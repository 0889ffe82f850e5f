package browser

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/live/web"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/prefix"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// site is a server of the page: a real router and store, with traffic that is made here.
type site struct {
	url      string
	address  string
	router   *route.Router
	trials   *trial.Trials
	store    *live.Store
	handler  http.Handler
	page     *web.Server
	server   *http.Server
	requests sync.WaitGroup
	// explained are the questions that were asked.
	mu        sync.Mutex
	explained []web.Question
	// before is how long ago the store began.
	began time.Time
}

// addressOf is that of the i-th endpoint.
func addressOf(i int) string { return fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1) }

func newSite(t *testing.T, endpoints int, policy route.Policy) *site {
	t.Helper()
	var list []fleet.Endpoint
	for i := range endpoints {
		e := fleet.Endpoint{Address: addressOf(i), Weight: 1, Zone: []string{"eu-1a", "eu-1b", "eu-1c"}[i%3]}
		if i%97 == 5 {
			e.State = fleet.Unhealthy
		}
		list = append(list, e)
	}
	set, _ := fleet.NewSet(list)
	s := &site{router: route.NewRouter(policy), began: time.Now().Add(-10 * time.Minute)}
	s.router.SetMembership(set)
	s.trials = trial.New(s.router)
	s.store = live.New(s.began)
	s.page = web.New(web.Options{
		Version: "v0.1.0", Store: s.store,
		Pools: []live.Pool{
			{Router: s.router, Trials: s.trials, Members: func() []view.Endpoint { return s.members(set) }},
			{Name: "embeddings", Router: route.NewRouter(route.Policy{}), Members: func() []view.Endpoint { return nil }},
		},
		Config:  func() (string, int) { return "routingConfig:\n  routingStrategy: PREFIX_AWARE\n", 3 },
		Explain: s.explain,
	})
	mux := http.NewServeMux()
	s.page.Register(mux)
	s.handler = mux
	s.start(t, "127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

// start serves the page at an address.
func (s *site) start(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s.address, s.url = listener.Addr().String(), "http://"+listener.Addr().String()
	s.server = &http.Server{Handler: s.handler}
	go func() {
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
}

// stop cuts all connections.
func (s *site) stop() { _ = s.server.Close() }

func (s *site) members(set fleet.Set) []view.Endpoint {
	counts := make(map[string]load.Count)
	for _, c := range s.router.Loads().Snapshot() {
		counts[c.Address] = c
	}
	var list []view.Endpoint
	for _, e := range set.Endpoints() {
		m := view.Endpoint{Address: e.Address, State: e.State.String(), Zone: e.Zone, Weight: e.Weight, Outstanding: counts[e.Address].Outstanding}
		if e.State != fleet.Healthy {
			m.Cause = "3 probes in a row failed"
		}
		list = append(list, m)
	}
	return list
}

// explain remembers the question and answers with the router's decision for it.
func (s *site) explain(q web.Question) (view.Explanation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.explained = append(s.explained, q)
	levels := levelsOf("asked", 12)
	d := s.router.Preview(route.Request{Key: levels[11], Keyed: true, Levels: levels, Chars: 3072})
	return view.Explanation{
		API: "chat", Kind: "text", Pool: "default", TextChars: 3072, TenantSource: "none", Notes: []string{},
		Decision: live.ViewDecision("", &d, d.Warm, 3072), Homes: []view.Home{{Address: d.Chosen, Load: d.Load, Bound: d.Bound}},
	}, nil
}

func levelsOf(name string, n int) (levels []uint64) {
	for i := range n {
		levels = append(levels, xxhash.Sum64String(fmt.Sprintf("%s/%d", name, i)))
	}
	return levels
}

// prompt is one of few documents behind the rules that all have, and a question.
func prompt(random *rand.Rand) []uint64 {
	levels := append(levelsOf("rules", 23), levelsOf(fmt.Sprint("document", min(random.IntN(40), random.IntN(40))), 60)...)
	return append(levels, levelsOf(fmt.Sprint("question", random.Uint64()), 6)...)
}

// decide sends one request of the moment at through router and store; finish ends it.
func (s *site) decide(random *rand.Rand, at time.Time) (finish func()) {
	levels := prompt(random)
	key := levels[len(levels)-1]
	if length := s.router.Table().Policy().PrefixLength; length > 0 {
		key = levels[length/route.LevelChars-1]
	}
	request := route.Request{
		Key: key, Keyed: true, Levels: levels, Chars: len(levels) * route.LevelChars,
		Now: int64(at.Sub(s.began)), Random: random.Uint64(),
	}
	d, slot := s.router.Table().Pick(request)
	var slots trial.Slots
	if current := s.trials.Current(); current != nil {
		current.Shadow.Decide(&trial.Asked{Request: request, Key: key, Chosen: d.Chosen, Reason: d.Reason}, &slots)
	}
	took := time.Duration(15+random.ExpFloat64()*20) * time.Microsecond
	r := &extproc.Record{
		Began: at, Scanned: at, Decided: at.Add(took), API: prefix.Chat, BodyBytes: int64(len(levels) * 260), KeyChars: len(levels) * route.LevelChars,
		Model: "llama-70b", RequestID: fmt.Sprintf("%08x-0000-4000-8000-%012x", random.Uint32(), random.Uint32()), Decision: d,
	}
	s.store.Decided(r)
	return func() {
		r.Answered, r.Status, r.Served, r.Attempts = time.Now(), 200, d.Chosen, 1
		if random.IntN(200) == 0 {
			r.Status = 503
		}
		s.store.Served(r)
		s.store.Inspected(d.Chosen, len(levels)*64, d.Warm/4, 80*time.Millisecond, r.CacheExpectation())
		s.store.Ended(r)
		slot.Release()
		slots.Release()
	}
}

// past fills the last minutes.
func (s *site) past(seconds, rate int) {
	random := rand.New(rand.NewPCG(1, 1))
	now := time.Now()
	var running []func()
	for second := range seconds {
		wave := float64(rate) * (0.7 + 0.3*random.Float64())
		for i := range int(wave) {
			at := now.Add(-time.Duration(seconds-second)*time.Second + time.Duration(float64(i)/wave*float64(time.Second)))
			if running = append(running, s.decide(random, at)); len(running) > 6*s.router.Table().Candidates() {
				running[0]()
				running = running[1:]
			}
		}
	}
	for _, finish := range running[:len(running)/2] {
		finish()
	}
}

// traffic sends so many requests a second until the test ends.
func (s *site) traffic(t *testing.T, rate int) {
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); s.requests.Wait() })
	s.requests.Go(func() {
		random := rand.New(rand.NewPCG(2, 2))
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		var running []func()
		for {
			select {
			case <-ctx.Done():
				for finish := range slices.Values(running) {
					finish()
				}
				return
			case at := <-ticker.C:
				for range rate / 50 {
					running = append(running, s.decide(random, at))
				}
				for len(running) > 3*s.router.Table().Candidates() {
					running[0]()
					running = running[1:]
				}
			}
		}
	})
}
