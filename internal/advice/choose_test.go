package advice

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func run(setting string, hit float64, p90 int) Run {
	return Run{Setting: setting, Hit: hit, P90: time.Duration(p90) * time.Millisecond}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		want string
		runs []Run
	}{
		{"auto", []Run{run("auto", .6, 100), run("fixed", .6, 100)}},
		{"auto", []Run{run("auto", .6, 104), run("fixed", .605, 100)}},
		{"fixed", []Run{run("auto", .6, 110), run("fixed", .6, 100)}},
		{"fixed", []Run{run("auto", .58, 104), run("fixed", .6, 100)}},
		{"random", []Run{run("auto", .9, 200), run("fixed", .8, 150), run("random", .1, 100)}},
		{"only", []Run{run("only", 0, 0)}},
	} {
		if got := Choose(c.runs); got.Setting != c.want {
			t.Errorf("%v: %s, want %s", c.runs, got.Setting, c.want)
		}
	}
}

// Whatever is chosen, nothing is clearly faster, and of those as fast nothing hits
// clearly more.
func TestChoiceIsAsGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var runs []Run
		for i := range rapid.IntRange(1, 8).Draw(t, "runs") {
			runs = append(runs, run(fmt.Sprint(i), rapid.Float64Range(0, 1).Draw(t, "hit"), rapid.IntRange(1, 300).Draw(t, "p90")))
		}
		got := Choose(runs)
		for _, r := range runs {
			if float64(got.P90) > SameTime*float64(r.P90) || r.P90 <= got.P90 && r.Hit > got.Hit+SamePoints+1e-9 {
				t.Errorf("%+v is chosen, %+v is better", got, r)
			}
		}
	})
}

func TestKeepAndBound(t *testing.T) {
	auto := run("auto", .6, 100)
	for _, c := range []struct {
		other      Run
		keep, wins bool
	}{
		{run("x", .6, 100), true, false},
		{run("x", .585, 104), true, false},
		{run("x", .57, 100), false, false},
		{run("x", .6, 106), false, false},
		{run("x", .6, 91), true, false},
		{run("x", .6, 89), true, true},
		{run("x", .58, 80), true, false},
	} {
		if got := Keep(c.other, auto); got != c.keep {
			t.Errorf("%+v is as good as %+v: %t", c.other, auto, got)
		}
		if got := Bounded(auto, []Run{c.other}).Setting == "x"; got != c.wins {
			t.Errorf("%+v beats %+v: %t", c.other, auto, got)
		}
	}
	fast, faster := run("fast", .6, 85), run("faster", .6, 80)
	for _, others := range [][]Run{{fast, faster}, {faster, fast}} {
		if got := Bounded(auto, others); got.Setting != "faster" {
			t.Errorf("of %v %s is taken", others, got.Setting)
		}
	}
	if !Quiet(run("", 0, 110), run("", 0, 100)) || Quiet(run("", 0, 112), run("", 0, 100)) {
		t.Error("what is quiet")
	}
}

func TestSmallest(t *testing.T) {
	fleet := func(n int, hit float64, p90 int) Run {
		r := run("auto", hit, p90)
		r.Replicas = n
		return r
	}
	for _, c := range []struct {
		fleets []Run
		want   int
		enough bool
	}{
		{[]Run{fleet(2, .4, 900), fleet(4, .59, 130), fleet(8, .6, 110), fleet(16, .6, 100)}, 8, true},
		{[]Run{fleet(2, .59, 120), fleet(4, .6, 100)}, 2, true},
		{[]Run{fleet(2, .4, 900), fleet(4, .6, 100)}, 4, false},
		{[]Run{fleet(2, .4, 900), fleet(4, .6, 100), fleet(8, .5, 130)}, 4, true},
		{[]Run{fleet(8, .29, 960), fleet(12, .26, 810), fleet(16, .25, 770), fleet(32, .24, 710)}, 12, true},
		{[]Run{fleet(2, .58, 100), fleet(4, .7, 100), fleet(8, .5, 100)}, 4, true}, // not the largest hits most
		{[]Run{fleet(2, .6, 130), fleet(4, .6, 100), fleet(8, .6, 110)}, 4, true},  // nor is it the fastest
		{[]Run{fleet(1, 0, 0)}, 1, false},
	} {
		if got, enough := Smallest(c.fleets); got.Replicas != c.want || enough != c.enough {
			t.Errorf("%v: %d, enough %t", c.fleets, got.Replicas, enough)
		}
	}
	for n, want := range map[int][]int{1: {1, 2, 4}, 2: {1, 2, 3, 4, 8}, 8: {2, 4, 6, 8, 12, 16, 32}, 1000: {250, 500, 750, 1000}} {
		if got := Sizes(n, 1000); !slices.Equal(got, want) {
			t.Errorf("%d replicas: %v", n, got)
		}
	}
}
