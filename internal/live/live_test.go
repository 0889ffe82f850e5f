package live

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when the stores of the tests begin.
func start() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// record is a request that was decided so long after the start, in 50 µs.
func record(after time.Duration, d route.Decision) *extproc.Record {
	at := start().Add(after)
	return &extproc.Record{
		Began: at, Scanned: at.Add(-50 * time.Microsecond), Decided: at, RequestID: "id-1", Model: "llama-70b",
		KeyChars: 1000, Decision: d,
	}
}

// decision is one for an endpoint.
func decision(chosen string, reason route.Reason) route.Decision {
	return route.Decision{Strategy: route.PrefixAware, Reason: reason, Chosen: chosen, Keyed: true, Key: 0xab, HomeCount: 1, Warm: 900, Load: 2, Bound: 8}
}

// A request costs no allocation, and little time.
func TestObservingDoesNotAllocate(t *testing.T) {
	s := New(start())
	r := record(time.Second, decision("10.0.0.1:80", route.Home))
	r.Served = "10.0.0.1:80"
	if n := testing.AllocsPerRun(1000, func() {
		s.Decided(r)
		s.Served(r)
		s.Ended(r)
	}); n != 0 {
		t.Errorf("%.0f allocations a request", n)
	}
}

// BenchmarkRequest is what a request pays, with others at once:
// go test -run - -bench Request -cpu 1,2 ./internal/live; on a machine that does other
// things too the processor time of -cpuprofile tells more than the clock.
func BenchmarkRequest(b *testing.B) {
	s := New(start())
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		r := record(time.Second, decision("10.0.0.1:80", route.Home))
		r.Status, r.Served = 200, "10.0.0.1:80"
		for p.Next() {
			s.Decided(r)
			s.Served(r)
			s.Ended(r)
		}
	})
}

// The last decisions are kept with what came of them, and each change is told once.
func TestDecisions(t *testing.T) {
	s := New(start())
	all := Since{Decisions: MaxDecisions}
	var records []*extproc.Record
	for i := range 250 {
		r := record(time.Duration(i)*time.Millisecond, decision("10.0.0.1:80", route.Home))
		r.RequestID = fmt.Sprint("id-", i)
		records = append(records, r)
		s.Decided(r)
	}
	_, got, next := s.Since(all, start().Add(time.Second))
	if len(got) != MaxDecisions || got[0].ID != 51 || got[199].RequestID != "id-249" {
		t.Fatalf("%d decisions, the first %+v", len(got), got[0])
	}
	if _, got, _ := s.Since(next, start().Add(time.Second)); len(got) != 0 {
		t.Errorf("nothing has happened, and %d decisions are different", len(got))
	}
	records[240].Status, records[240].Served, records[240].Missed, records[240].Attempts = 200, "10.0.0.9:80", true, 2
	s.Served(records[240])
	s.Served(records[3]) // it is forgotten
	_, got, next = s.Since(next, start().Add(time.Second))
	if len(got) != 1 || got[0].RequestID != "id-240" || got[0].Status != 200 || !got[0].Missed || got[0].Ended || !strings.Contains(got[0].Sentence, "10.0.0.9:80") {
		t.Errorf("told %+v", got)
	}
	s.Ended(records[240])
	s.Ended(records[240]) // once is enough
	if _, got, _ = s.Since(next, start().Add(time.Second)); len(got) != 1 || !got[0].Ended {
		t.Errorf("told %+v", got)
	}
	for i, owner := range s.last.owners {
		if owner == records[240] {
			t.Errorf("entry %d still has the record of a request that has ended", i)
		}
	}
	if _, got, _ := s.Since(Since{Decisions: 3}, start()); len(got) != 3 || got[2].RequestID != "id-249" {
		t.Errorf("the newest three are %+v", got)
	}
}

// What clients call things is copied, and cut.
func TestWordsAreCopied(t *testing.T) {
	s := New(start())
	r := record(0, decision("10.0.0.1:80", route.Home))
	r.Model = strings.Repeat("m", 500)
	s.Decided(r)
	r.Model = "another"
	if _, got, _ := s.Since(Since{Decisions: 1}, start()); got[0].Model != strings.Repeat("m", 64) {
		t.Errorf("the model is %q", got[0].Model)
	}
}

// The seconds say what a simple list of all requests says, also when requests come late
// and with gaps longer than all that is kept.
func TestSecondsAgreeWithTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(start())
		type request struct {
			second int64
			reason route.Reason
		}
		var all []request
		now := int64(0)
		for range rapid.IntRange(0, 40).Draw(t, "requests") {
			now += int64(rapid.SampledFrom([]int{0, 0, 1, 2, 30, 700, 2000}).Draw(t, "pause"))
			r := request{max(now-int64(rapid.IntRange(0, 2).Draw(t, "late")), 0), rapid.SampledFrom([]route.Reason{route.Home, route.Overflow, route.Saturated}).Draw(t, "reason")}
			all = append(all, r)
			s.Decided(record(time.Duration(r.second)*time.Second, decision("a", r.reason)))
		}
		first := int64(rapid.IntRange(0, 100).Draw(t, "seen"))
		seconds, _, next := s.Since(Since{Second: first}, start().Add(time.Duration(now)*time.Second))
		if next.Second != max(now, first) || len(seconds) > MaxSeconds {
			t.Fatalf("%d seconds until %d, want %d", len(seconds), next.Second, now)
		}
		at := max(first, now-MaxSeconds+1, 0)
		for _, got := range seconds {
			want := view.Second{}
			overflowed := uint32(0)
			for _, r := range all {
				if r.second == at {
					want.Requests++
					if r.reason != route.Home {
						overflowed++
					}
				}
			}
			var names []string
			for _, r := range route.Reasons() {
				names = append(names, r.String())
			}
			if got.Second != at || got.Requests != want.Requests || got.Overflowed(names) != overflowed || got.Cached != uint64(got.Requests)*900 || got.Characters != uint64(got.Requests)*1000 {
				t.Fatalf("second %d: %+v, want %d requests of which %d overflowed", at, got, want.Requests, overflowed)
			}
			if got.Requests > 0 && (got.P50 < 50 || got.P50 > 63 || got.P99 != got.P50) {
				t.Fatalf("P50 %v, P99 %v, want 50 µs", got.P50, got.P99)
			}
			at++
		}
	})
}

// A quantile is at most a quarter too long, within the histogram's range.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h histogram
		d := time.Duration(rapid.Int64Range(256, 300e6).Draw(t, "ns"))
		h.add(d)
		for _, q := range []float64{0.01, 0.5, 0.99, 1} {
			if got := h.quantile(q); got < d || float64(got) > 1.25*float64(d)+1 {
				t.Fatalf("quantile %v of %v is %v", q, d, got)
			}
		}
	})
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("of nothing the median is 0")
	}
	for i := range 100 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	h.add(-time.Second)
	h.add(time.Hour)
	if p50 := h.quantile(0.5); p50 < 50*time.Millisecond || p50 > 64*time.Millisecond {
		t.Errorf("P50 of 1..100 ms is %v", p50)
	}
}

// Counts are those of the last minute, and of each pool for itself.
func TestMinute(t *testing.T) {
	s := New(start())
	for second := range 120 {
		r := record(time.Duration(second)*time.Second, decision("a", route.Home))
		if second >= 110 {
			r.Decision.Reason = route.Overflow
		}
		s.Decided(r)
		r.Pool = "other"
		s.Decided(r)
	}
	got := s.endpoints[place{"", "a"}].minute(119)
	if got.requests != 60 || got.overflow != 10 || got.cached != 54_000 || got.chars != 60_000 {
		t.Errorf("the last minute has %+v", got)
	}
	if got := s.endpoints[place{"", "a"}].minute(300); got != (minute{}) {
		t.Errorf("a minute without requests has %+v", got)
	}
}

// Endpoints that come and go do not fill the memory.
func TestEndpointsAreBounded(t *testing.T) {
	s := New(start())
	for i := range maxEndpoints + 1000 {
		s.Decided(record(time.Second, decision(fmt.Sprint(i), route.Home)))
	}
	if n := len(s.endpoints); n != maxEndpoints {
		t.Errorf("%d endpoints, want %d", n, maxEndpoints)
	}
	s.Decided(record(time.Hour, decision("late", route.Home)))
	if n := len(s.endpoints); n != 1 {
		t.Errorf("after an hour %d endpoints, want the one", n)
	}
}

// What engines say is counted for endpoints that were chosen, and nothing absurd.
func TestInspected(t *testing.T) {
	s := New(start())
	s.Inspected("a", 1000, 500, time.Second, extproc.CacheWarm)
	if len(s.inspected) != 0 {
		t.Error("an endpoint that was never chosen is counted")
	}
	s.Decided(record(0, decision("a", route.Home)))
	s.Inspected("a", 0, 0, 0, extproc.CacheWarm)
	s.Inspected("a", 10, 11, 0, extproc.CacheWarm)
	s.Inspected("a", 10, -1, 0, extproc.CacheWarm)
	for range 50 {
		s.Inspected("a", 1000, 750, 100*time.Millisecond, extproc.CacheWarm)
		s.Inspected("a", 1000, 250, 400*time.Millisecond, extproc.CacheCold)
	}
	x := s.inspected["a"]
	warm, cold := x.first[extproc.CacheWarm].mean(x.at), x.first[extproc.CacheCold].mean(x.at)
	if rate := *x.tokens(x.at).rate(); rate < 0.49 || rate > 0.51 || warm < 0.099 || warm > 0.101 || cold < 0.399 {
		t.Errorf("hit rate %v, first token %v", rate, x.first)
	}
}

// Where many answers were looked at in the last minute, each counts as much as the
// others and those before do not; where few were, the last hundred count.
func TestHitRateIsOfTheLastMinute(t *testing.T) {
	var x inspected
	for second := range int64(60) {
		for range 10 {
			x.add(second, tokens{1000, 0})
		}
	}
	for second := int64(60); second < 90; second++ {
		for range 10 {
			x.add(second, tokens{1000, 900})
		}
	}
	for _, tc := range []struct {
		at   int64
		want float64
	}{
		{89, .9 * 30 / 60},
		{115, .9}, // only the later ones are of the last minute
		{149, .9}, // none are, so the last hundred count
		{89 + shownFor, .9},
	} {
		if rate := *x.tokens(tc.at).rate(); rate < tc.want-0.05 || rate > tc.want+0.05 {
			t.Errorf("at second %d: %.3f, want %.3f", tc.at, rate, tc.want)
		}
	}
}

// What answers said is not shown for ever, and does not come back with the next one. The
// tokens and the times of each expectation are so each for itself.
func TestOldAnswersAreNotShown(t *testing.T) {
	s := New(start())
	s.Decided(record(0, decision("a", route.Home)))
	warm, cold := time.Second, 4*time.Second
	s.hear("a", 10, heard{tokens{100, 90}, warm, extproc.CacheWarm})
	x := s.inspected["a"]
	shown := func(now int64) [4]float64 {
		rate := x.tokens(now).rate()
		if rate == nil {
			rate = new(-1.)
		}
		return [4]float64{*rate, x.first[extproc.CacheWarm].mean(now), x.first[extproc.CacheCold].mean(now), float64(x.at)}
	}
	for _, tc := range []struct {
		now  int64
		said *heard
		want [4]float64
	}{
		{10 + shownFor, nil, [4]float64{0.9, 1, 0, 10}},
		{11 + shownFor, nil, [4]float64{-1, 0, 0, 10}},
		{11 + shownFor, &heard{first: cold, expected: extproc.CacheCold}, [4]float64{-1, 0, 4, 11 + shownFor}},
		{12 + shownFor, &heard{tokens: tokens{100, 20}}, [4]float64{0.2, 0, 4, 12 + shownFor}},
		{13 + shownFor, &heard{first: 3 * warm, expected: extproc.CacheWarm}, [4]float64{0.2, 3, 4, 13 + shownFor}},
		{12 + 2*shownFor, nil, [4]float64{0.2, 3, 0, 13 + shownFor}},
	} {
		if tc.said != nil {
			s.hear("a", tc.now, *tc.said)
		}
		if got := shown(tc.now); got != tc.want {
			t.Errorf("at second %d with %+v: %v, want %v", tc.now, tc.said, got, tc.want)
		}
	}
}

// The sum that is kept is that of the last hundred.
func TestTokensOfTheLastAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x inspected
		var all []tokens
		for i := range rapid.IntRange(0, 3*many).Draw(t, "n") {
			one := tokens{rapid.Int64Range(1, 1000).Draw(t, "prompt"), 0}
			one.cached = rapid.Int64Range(0, one.prompt).Draw(t, "cached")
			x.add(int64(i), one)
			all = append(all, one)
		}
		var want tokens
		for _, one := range all[max(len(all)-many, 0):] {
			want.add(one)
		}
		if got := x.tokens(int64(len(all))); got != want {
			t.Fatalf("%+v after %d answers, want %+v", got, len(all), want)
		}
	})
}

// What was read of a response counts for who served it; an engine that never told of
// cached tokens is not taken to have had none.
func TestInspectionsCount(t *testing.T) {
	s := New(start())
	r := record(time.Second, decision("a", route.Home))
	r.Served = "a"
	s.Decided(r)
	for _, tc := range []struct {
		inspection extproc.Inspection
		want       tokens
		first      float64 // mean, in seconds
	}{
		{extproc.Inspection{Result: extproc.InspectionNoUsage, PromptTokens: 7}, tokens{}, 0},
		// OpenAI's streams end with their usage only if the client asks for it.
		{extproc.Inspection{Result: extproc.InspectionNoUsage, FirstToken: r.Began.Add(time.Second)}, tokens{}, 1},
		{extproc.Inspection{Result: extproc.InspectionNoCached, PromptTokens: 100, FirstToken: r.Began.Add(time.Second)}, tokens{}, 1},
		{extproc.Inspection{Result: extproc.InspectionRead, PromptTokens: 100, CachedTokens: 80, FirstToken: r.Began.Add(time.Second)}, tokens{100, 80}, 1},
		{extproc.Inspection{Result: extproc.InspectionNoCached, PromptTokens: 100}, tokens{200, 80}, 1},
	} {
		r.Inspection = &tc.inspection
		s.Ended(r)
		x := s.inspected["a"]
		if x == nil {
			x = new(inspected)
		}
		if got := x.tokens(x.at); got != tc.want {
			t.Errorf("%+v: %+v, want %+v", tc.inspection, got, tc.want)
		}
		if got := x.first[extproc.CacheWarm].mean(x.at); got != tc.first || x.first[extproc.CacheCold].n != 0 {
			t.Errorf("%+v: first token of a warm prompt after %v s, want %v", tc.inspection, got, tc.first)
		}
	}
}

// Requests and operators may come at once.
func TestAtOnce(t *testing.T) {
	s := New(start())
	router := route.NewRouter(route.Policy{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 300 {
				r := record(time.Duration(j)*10*time.Millisecond, decision(fmt.Sprint(i), route.Home))
				s.Decided(r)
				s.Served(r)
				s.Inspected(fmt.Sprint(i), 10, 5, time.Second, extproc.CacheWarm)
				s.Ended(r)
			}
		})
	}
	all.Go(func() {
		var seen Since
		for range 50 {
			seen.Decisions = 40
			_, _, seen = s.Since(seen, start().Add(3*time.Second))
			s.Fleet([]Pool{{Router: router, Members: func() []view.Endpoint { return nil }}}, start().Add(3*time.Second))
		}
	})
	all.Wait()
	if s.last.n != 1200 {
		t.Errorf("%d decisions", s.last.n)
	}
}

// Of a strategy that remembers nothing no time is one of a cold cache, in the metric and
// here.
func TestUnknownIsNotCold(t *testing.T) {
	router, members := routerOf(2, route.Policy{Strategy: route.Random})
	s := New(start())
	r := record(time.Second, route.Decision{Strategy: route.Random, Reason: route.ByRandom, Chosen: "10.0.0.1:80", Rank: route.NoRank})
	r.Status, r.Served = 200, "10.0.0.1:80"
	s.Decided(r)
	s.Served(r)
	r.Inspection = &extproc.Inspection{Result: extproc.InspectionRead, PromptTokens: 100, CachedTokens: 90, FirstToken: r.Began.Add(time.Second)}
	s.Ended(r)
	pools, _ := s.Fleet([]Pool{{Router: router, Members: members}}, time.Now())
	if m := pools[0].Members[0]; m.FirstTokenWarm != 0 || m.FirstTokenCold != 0 || m.FirstTokenUnknown != 1 {
		t.Errorf("first tokens %v, %v and %v s, warm, cold and unknown; nothing is known of it", m.FirstTokenWarm, m.FirstTokenCold, m.FirstTokenUnknown)
	}
}

// A failure counts in the second in which it is seen, so that who follows the stream is
// told of those that come later than their requests, as a timeout does.
func TestLateFailuresAreTold(t *testing.T) {
	s := New(start())
	r := record(1500*time.Millisecond, decision("10.0.0.1:80", route.Home))
	s.Decided(r)
	first, _, next := s.Since(Since{}, start().Add(3*time.Second))
	r.Status, r.Served, r.Answered = 504, "10.0.0.1:80", start().Add(6*time.Second)
	s.Served(r)
	s.Ended(r)
	later, _, _ := s.Since(next, start().Add(8*time.Second))
	for _, x := range append(first, later...) {
		if want := x.Second == 6; (x.Failed == 1) != want || x.Failed > 1 {
			t.Errorf("second %d: %d failures", x.Second, x.Failed)
		}
	}
	if len(first)+len(later) != 8 {
		t.Errorf("%d and %d seconds, want 8", len(first), len(later))
	}
}
