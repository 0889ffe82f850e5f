package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/bench/chaos/traffic"
)

// beyond counts as a dumb twin does: at each beginning it looks at every visit.
func TestBeyond(t *testing.T) {
	zero := time.Unix(0, 0)
	rapid.Check(t, func(t *rapid.T) {
		var visits []visit
		for range rapid.IntRange(0, 30).Draw(t, "visits") {
			begin := rapid.IntRange(0, 1000).Draw(t, "begin")
			visits = append(visits, visit{
				replica: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "replica"),
				begin:   zero.Add(time.Duration(begin)), end: zero.Add(time.Duration(begin + rapid.IntRange(1, 300).Draw(t, "length"))),
			})
		}
		bound, want := rapid.IntRange(1, 6).Draw(t, "bound"), 0
		for i, v := range visits {
			running := 0
			for j, w := range visits {
				// Of those that begin together each is behind the ones before it.
				if w.replica == v.replica && w.end.After(v.begin) && (w.begin.Before(v.begin) || w.begin.Equal(v.begin) && j <= i) {
					running++
				}
			}
			if running > bound {
				want++
			}
		}
		if got := beyond(visits, bound); got != want {
			t.Errorf("%d visits begin beyond %d, want %d: %v", got, bound, want, visits)
		}
	})
}

// Whatever is wrong shows in the table and in the error.
func TestReportTellsWhatIsWrong(t *testing.T) {
	good := newRow("calm")
	good.Requests, good.ByEnvoy, good.Excused["it was dead"] = 10, 2, 3
	r := report{Rows: []row{good}}
	if err := r.err(); err != nil {
		t.Errorf("nothing is wrong: %v", err)
	}
	for name, spoil := range map[string]func(*row){
		"failed": func(r *row) { r.Failed++ }, "altered": func(r *row) { r.Altered++ }, "misrouted": func(r *row) { r.Misrouted++ },
		"over": func(r *row) { r.Over++ }, "leaked": func(r *row) { r.Leaked++ }, "error": func(r *row) { r.Error = "no luck" },
	} {
		bad := newRow(name)
		spoil(&bad)
		bad.note("of %s", name)
		sum := newRow("sum")
		sum.add(good)
		sum.add(bad)
		r := report{Rows: []row{sum}}
		if err := r.err(); err == nil || !strings.Contains(err.Error(), "sum (1)") {
			t.Errorf("%s: error %v", name, err)
		}
		if text := r.markdown(); !strings.Contains(text, "WRONG, sum: of "+name) || !strings.Contains(text, "sum: 3, it was dead") {
			t.Errorf("%s: the text does not say so:\n%s", name, text)
		}
	}
	full := newRow("full")
	for i := range 2 * maxNotes {
		full.note("note %d", i)
	}
	if len(full.Notes) != maxNotes {
		t.Errorf("%d notes are kept, want %d", len(full.Notes), maxNotes)
	}
}

// A figure that grows is found, one that goes up and down is not.
func TestTrends(t *testing.T) {
	for _, tc := range []struct {
		name  string
		value func(i int) int
		want  bool
	}{
		{"flat", func(int) int { return 100 }, false},
		{"up and down", func(i int) int { return 100 + 40*(i%2) }, false},
		{"higher from the beginning on", func(i int) int { return map[bool]int{true: 10, false: 300}[i < 5] }, false},
		{"growing", func(i int) int { return 100 + i }, true},
		{"shrinking", func(i int) int { return 500 - i }, false},
	} {
		var samples []sample
		for i := range 100 {
			samples = append(samples, sample{Goroutines: tc.value(i)})
		}
		list := trends(samples)
		grows := slices.ContainsFunc(list, func(t trend) bool { return t.Grows })
		if grows != tc.want {
			t.Errorf("%s: %+v", tc.name, list)
		}
		r := report{Samples: samples, Trends: list}
		if (r.err() != nil) != tc.want || !strings.Contains(r.markdown(), fmt.Sprintf("| 30 | %v |", grows)) {
			t.Errorf("%s: %v\n%s", tc.name, r.err(), r.markdown())
		}
	}
	var few []sample
	for i := range enough - 1 {
		few = append(few, sample{Goroutines: 10 * i})
	}
	if list := trends(few); list[2].Grows || list[2].Last <= list[2].Second {
		t.Errorf("of a time that is too short to judge: %+v", list)
	}
	if list := trends(nil); len(list) != 4 || list[0].Grows {
		t.Errorf("of no samples: %+v", list)
	}
}

// What Envoy chose by itself is misrouted unless Envoy says so, or warmpath was
// disturbed.
func TestRouted(t *testing.T) {
	form, begin := new(traffic.Form), time.Unix(100, 0)
	sent := func(replica string, attempts int, choices ...string) *traffic.Sent {
		return &traffic.Sent{
			Form: form, Status: 200, Replica: replica, Attempts: attempts, Choices: choices, Began: begin, Ended: begin.Add(time.Second),
		}
	}
	for _, tc := range []struct {
		name           string
		q              *traffic.Sent
		passed, missed int
		windows        []window
		want           int
	}{
		{name: "first choice", q: sent("a", 1, "a", "b")},
		{name: "second choice", q: sent("b", 2, "a", "b")},
		{name: "beyond the choices", q: sent("c", 3, "a", "b")},
		{name: "elsewhere", q: sent("b", 1, "a", "b"), want: 1},
		{name: "nobody knows how often it was tried", q: sent("a", 0, "a", "b"), want: 1},
		{name: "no choice", q: sent("a", 1), want: 1},
		{name: "no choice, as Envoy says", q: sent("a", 1), passed: 1},
		{name: "no choice, disturbed", q: sent("a", 1), windows: []window{{begin.Add(-time.Second), begin.Add(time.Millisecond)}}},
		{name: "no choice, disturbed later", q: sent("a", 1), windows: []window{{begin.Add(2 * time.Second), begin.Add(3 * time.Second)}}, want: 1},
		{name: "nobody answered", q: sent("", 1, "a")},
		{name: "warmpath saw a miss", q: sent("a", 1, "a"), missed: 2, want: 2},
	} {
		r := &round{scenario: new(scenario), config: strategies[len(strategies)-1], windows: tc.windows}
		got := newRow(tc.name)
		r.routed(map[string]*traffic.Sent{"1": tc.q}, tc.passed, tc.missed, &got)
		if got.Misrouted != tc.want {
			t.Errorf("%s: %d misrouted, want %d", tc.name, got.Misrouted, tc.want)
		}
	}
}
