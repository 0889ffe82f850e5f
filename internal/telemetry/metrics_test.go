package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/prefix"
	"github.com/warmpath/warmpath/internal/route"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newRouter returns a router with endpoints 10.0.0.1:80, 10.0.0.2:80, ...
func newRouter(t testing.TB, strategy route.Strategy, n int) *route.Router {
	t.Helper()
	var endpoints []fleet.Endpoint
	for i := range n {
		endpoints = append(endpoints, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i+1), Weight: 1})
	}
	set, duplicates := fleet.NewSet(endpoints)
	if len(duplicates) > 0 {
		t.Fatalf("duplicates %v", duplicates)
	}
	r := route.NewRouter(route.Policy{Strategy: strategy, PrefixLength: 1024, ConcurrencyThreshold: 1})
	r.SetMembership(set)
	return r
}

// record is a decided request whose times are known: headers at 0, the body
// after 2 ms, the key 40 µs later, and the decision 10 µs after that.
func record(t testing.TB, r *route.Router, key uint64) (*extproc.Record, load.Reservation) {
	t.Helper()
	d, slot := r.Table().Pick(route.Request{Key: key, Keyed: true})
	began := time.Unix(1_700_000_000, 0)
	return &extproc.Record{
		Context: t.Context(), Began: began, Scanned: began.Add(2 * time.Millisecond),
		Keyed: began.Add(2040 * time.Microsecond), Decided: began.Add(2050 * time.Microsecond),
		API: prefix.Chat, BodyBytes: 100, KeyChars: 80, HasTenant: true, Model: "llama-70b", RequestID: "id-1", Decision: d,
	}, slot
}

// Endpoints that come and go do not add up where nobody ever scrapes, and those that are
// there keep their counts.
func TestEndpointsThatLeftAreForgotten(t *testing.T) {
	router := newRouter(t, route.Random, 1)
	m := NewMetrics(router.Loads())
	stays := "10.0.0.1:80"
	m.endpoints.chosen(stays)
	for i := range 5 * fewEndpoints {
		m.endpoints.chosen(fmt.Sprintf("10.1.%d.%d:80", i/250, i%250))
	}
	n := 0
	m.endpoints.totals.Range(func(any, any) bool {
		n++
		return true
	})
	if n > fewEndpoints || int64(n) != m.endpoints.size.Load() {
		t.Errorf("%d endpoints are kept (%d counted), want at most %d", n, m.endpoints.size.Load(), fewEndpoints)
	}
	if chosen := m.endpoints.of(stays).chosen.Load(); chosen != 1 {
		t.Errorf("the one that is there was chosen %d times, want once", chosen)
	}
	// Of many that are there none is forgotten.
	for i := range 2 * fewEndpoints {
		address := fmt.Sprintf("10.2.%d.%d:80", i/250, i%250)
		router.Loads().Counter(address)
		m.endpoints.chosen(address)
	}
	if size, many := m.endpoints.size.Load(), m.endpoints.many.Load(); size < 2*fewEndpoints || size > many || many > 5*fewEndpoints {
		t.Errorf("%d endpoints are kept, and %d looked through", size, many)
	}
}

// Every decision is counted once, under its strategy and reason.
func TestDecisionsByReason(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 2)
	m := NewMetrics(router.Loads())
	o := NewObserver(m, nil)
	for range 4 { // home, overflow, saturated twice: the threshold is 1
		r, _ := record(t, router, 42)
		o.Decided(r)
	}
	router.SetPolicy(route.Policy{Strategy: route.Random})
	r, _ := record(t, router, 42)
	o.Decided(r)
	want := `
# HELP warmpath_decisions_total Routing decisions.
# TYPE warmpath_decisions_total counter
`
	counts := map[string]int{
		"PREFIX_AWARE home": 1, "PREFIX_AWARE overflow": 1, "PREFIX_AWARE saturated": 2, "RANDOM random": 1,
	}
	for _, s := range route.Strategies() {
		for _, reason := range route.Reasons() {
			want += fmt.Sprintf("warmpath_decisions_total{pool=\"default\",reason=%q,strategy=%q} %d\n", reason, s, counts[s.String()+" "+reason.String()])
		}
	}
	if err := testutil.GatherAndCompare(m.Registry(), strings.NewReader(want), "warmpath_decisions_total"); err != nil {
		t.Error(err)
	}
	if n := testutil.ToFloat64(m.requests); n != 5 {
		t.Errorf("%v requests in flight, want 5", n)
	}
	for range 5 {
		o.Ended(r)
	}
	if n := testutil.ToFloat64(m.requests); n != 0 {
		t.Errorf("%v requests in flight at the end, want 0", n)
	}
}

// Each problem, each strategy and each reason has a counter, so that a new one
// cannot be forgotten.
func TestEveryProblemIsCounted(t *testing.T) {
	m := NewMetrics(load.NewTracker())
	o := NewObserver(m, nil)
	for _, p := range extproc.Problems() {
		if p == extproc.NoProblem || p == extproc.Panicked {
			continue
		}
		o.Decided(&extproc.Record{Problems: []extproc.Problem{p}})
	}
	o.Panicked(&extproc.Record{Problems: []extproc.Problem{extproc.Panicked}}, nil)
	for _, p := range extproc.Problems()[1:] {
		if n := testutil.ToFloat64(m.problems[p]); n != 1 {
			t.Errorf("problem %s is counted %v times, want once", p, n)
		}
	}
	if want := len(route.Reasons()); len(m.requested[DefaultPool].decisions[0]) != want {
		t.Errorf("counters for %d reasons, there are %d", len(m.requested[DefaultPool].decisions[0]), want)
	}
	if _, err := route.ParseStrategy(route.Strategy(len(m.requested[DefaultPool].decisions)).String()); err == nil {
		t.Errorf("there are more strategies than the %d that have counters", len(m.requested[DefaultPool].decisions))
	}
}

// The expected hit rate is of what is known: of prompts under the automatic length
// and KV_AWARE, but for those where there was nothing to look up.
func TestExpectedHitRate(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 2)
	m := NewMetrics(router.Loads())
	m.OfPool("llama")
	o := NewObserver(m, nil)
	send := func(pool string, policy route.Policy, chars int) {
		t.Helper()
		router.SetPolicy(policy)
		request := route.Request{Key: 7, Keyed: chars > 0, Chars: chars}
		for level := range chars / route.LevelChars {
			request.Levels = append(request.Levels, uint64(level+1))
		}
		d, slot := router.Table().Pick(request)
		defer slot.Release()
		o.Decided(&extproc.Record{Pool: pool, PromptChars: chars, Decision: d})
	}
	auto := route.Policy{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength}
	for range 3 {
		send("", auto, 1000) // cold, then 3 levels of 256 characters
	}
	send("llama", route.Policy{Strategy: route.KVAware}, 1000)
	send("", route.Policy{Strategy: route.PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 9}, 1000)
	send("", auto, 0)
	o.Decided(&extproc.Record{Decision: route.Decision{Strategy: route.KVAware, Keyed: true, Warm: 1}}) // of nothing nothing is warm
	send("", route.Policy{Strategy: route.Random}, 1000)
	for name, want := range map[string]map[string]float64{
		"warmpath_prompt_characters_total":          {"default": 3000, "llama": 1000},
		"warmpath_expected_cached_characters_total": {"default": 2 * 768, "llama": 768},
	} {
		for _, s := range gather(t, m, name) {
			if s.value != want[s.label] {
				t.Errorf("%s of %s is %v, want %v", name, s.label, s.value, want[s.label])
			}
		}
	}
}

func TestServedAndTimes(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 2)
	m := NewMetrics(router.Loads())
	o := NewObserver(m, nil)
	r, slot := record(t, router, 42)
	o.Decided(r)
	o.Served(r)
	r.Attempts = 1
	o.Served(r)
	r.Attempts, r.Missed = 2, true
	o.Served(r)
	address := r.Decision.Chosen
	want := fmt.Sprintf(`
# HELP warmpath_endpoint_requests_total Requests that an endpoint was chosen for.
# TYPE warmpath_endpoint_requests_total counter
warmpath_endpoint_requests_total{endpoint=%q} 1
# HELP warmpath_override_missed_total Responses that Envoy sent elsewhere than decided: it passed the chosen endpoint over.
# TYPE warmpath_override_missed_total counter
warmpath_override_missed_total 1
# HELP warmpath_retried_total Responses for which Envoy tried more than one endpoint.
# TYPE warmpath_retried_total counter
warmpath_retried_total 1
`, address)
	err := testutil.GatherAndCompare(m.Registry(), strings.NewReader(want),
		"warmpath_endpoint_requests_total", "warmpath_override_missed_total", "warmpath_retried_total")
	if err != nil {
		t.Error(err)
	}
	if n := outstanding(t, m, address); n != 1 {
		t.Errorf("outstanding %v, want 1", n)
	}
	slot.Release()
	if n := outstanding(t, m, address); n != 0 {
		t.Errorf("outstanding %v after the release, want 0", n)
	}
	for name, want := range map[string]float64{
		"warmpath_body_wait_seconds": 0.002, "warmpath_scan_seconds": 0.00004, "warmpath_pick_seconds": 0.00001,
		"warmpath_decide_seconds": 0.00005, "warmpath_routing_seconds": 0.00205,
	} {
		if got := histogramSum(t, m, name); got < want*0.999 || got > want*1.001 {
			t.Errorf("%s sums to %v, want %v", name, got, want)
		}
	}
}

// outstanding is the gauge of one endpoint, -1 if there is none.
func outstanding(t *testing.T, m *Metrics, address string) float64 {
	t.Helper()
	for _, s := range gather(t, m, "warmpath_outstanding_requests") {
		if s.label == address {
			return s.value
		}
	}
	return -1
}

type sample struct {
	label string // the value of the first label
	value float64
}

func gather(t *testing.T, m *Metrics, name string) []sample {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var samples []sample
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, s := range f.GetMetric() {
			x := sample{value: s.GetGauge().GetValue() + s.GetCounter().GetValue() + s.GetHistogram().GetSampleSum()}
			if len(s.GetLabel()) > 0 {
				x.label = s.GetLabel()[0].GetValue()
			}
			samples = append(samples, x)
		}
	}
	return samples
}

func histogramSum(t *testing.T, m *Metrics, name string) float64 {
	t.Helper()
	s := gather(t, m, name)
	if len(s) != 1 {
		t.Fatalf("%s has %d series, want 1", name, len(s))
	}
	return s[0].value
}

// Endpoints that left and are idle leave the metrics as well, for good.
func TestEndpointsThatLeft(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 3)
	m := NewMetrics(router.Loads())
	o := NewObserver(m, nil)
	for key := range uint64(50) {
		r, slot := record(t, router, key)
		o.Decided(r)
		slot.Release()
	}
	if n := len(gather(t, m, "warmpath_endpoint_requests_total")); n != 3 {
		t.Fatalf("%d endpoints have a counter, want 3", n)
	}
	for range 3 { // the tracker forgets an idle endpoint after two memberships
		router.SetMembership(newRouter(t, route.PrefixAware, 1).Membership())
	}
	for _, name := range []string{"warmpath_endpoint_requests_total", "warmpath_outstanding_requests"} {
		if s := gather(t, m, name); len(s) != 1 || s[0].label != "10.0.0.1:80" {
			t.Errorf("%s = %v, want only 10.0.0.1:80", name, s)
		}
	}
	count := 0
	m.endpoints.totals.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("%d totals are kept, want 1", count)
	}
}

// 20,000 made-up models and tenants add not one series and hardly any memory.
func TestSeriesDoNotGrowWithClients(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 7)
	m := NewMetrics(router.Loads())
	o := NewObserver(m, nil)
	send := func(n int) {
		for i := range n {
			r, slot := record(t, router, uint64(i))
			r.Model, r.Adapter = fmt.Sprintf("%0128d", i), fmt.Sprintf("%0128d", i)
			r.RequestID, r.Served = fmt.Sprintf("%064d", i), fmt.Sprintf("10.%d.%d.1:80", i/256, i%256)
			r.Problems = []extproc.Problem{extproc.InvalidTenant}
			o.Decided(r)
			r.Missed = true
			o.Served(r)
			slot.Release()
			o.Ended(r)
		}
	}
	send(200)
	before, heap := series(t, m), heapInUse()
	send(20_000)
	if after := series(t, m); after != before {
		t.Errorf("%d series, before the requests %d", after, before)
	}
	if grown := int64(heapInUse()) - int64(heap); grown > 5<<20 {
		t.Errorf("the heap grew by %d bytes, want less than 5 MiB", grown)
	}
}

func series(t *testing.T, m *Metrics) int {
	t.Helper()
	n, err := testutil.GatherAndCount(m.Registry(), warmpathNames(t, m)...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// warmpathNames are the program's own metrics, without those of the Go runtime.
func warmpathNames(t *testing.T, m *Metrics) []string {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "warmpath_") {
			names = append(names, f.GetName())
		}
	}
	return names
}

func heapInUse() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// A recovered panic is logged with its place, and counted.
func TestPanicIsToldOf(t *testing.T) {
	var log strings.Builder
	m := NewMetrics(load.NewTracker())
	o := NewObserver(m, nil)
	o.Panicked(new(extproc.Record), nil) // without a log
	o.Log = NewLogger(&log, "json", new(slog.LevelVar))
	o.Panicked(new(extproc.Record), []byte("stream.go:1"))
	if !strings.Contains(log.String(), `"level":"ERROR"`) || !strings.Contains(log.String(), "stream.go:1") {
		t.Errorf("log: %s", log.String())
	}
	if n := testutil.ToFloat64(m.problems[extproc.Panicked]); n != 2 {
		t.Errorf("counted %v times, want 2", n)
	}
}

func TestLogger(t *testing.T) {
	for format, want := range map[string]string{"json": `"msg":"seen"`, "text": "msg=seen"} {
		var b strings.Builder
		level := new(slog.LevelVar)
		log := NewLogger(&b, format, level)
		log.Debug("unseen")
		level.Set(slog.LevelDebug)
		log.Debug("seen")
		if got := b.String(); !strings.Contains(got, want) || strings.Contains(got, "unseen") {
			t.Errorf("%s: %s", format, got)
		}
	}
	NewLogger(io.Discard, "", new(slog.LevelVar)).Info("any other format is text")
}

// What is observed of a request costs no allocation.
func TestObservingAllocatesNothing(t *testing.T) {
	router := newRouter(t, route.PrefixAware, 7)
	o := NewObserver(NewMetrics(router.Loads()), nil)
	r, _ := record(t, router, 42)
	if n := testing.AllocsPerRun(1000, func() {
		o.Decided(r)
		o.Served(r)
		o.Ended(r)
	}); n > 0 {
		t.Errorf("%v allocations a request, want none", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	router := newRouter(b, route.PrefixAware, 7)
	o := NewObserver(NewMetrics(router.Loads()), nil)
	r, _ := record(b, router, 42)
	b.ReportAllocs()
	for b.Loop() {
		o.Decided(r)
		o.Served(r)
		o.Ended(r)
	}
}
