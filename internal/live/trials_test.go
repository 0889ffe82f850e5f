package live

import (
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// Nothing is shown where nothing is on trial, and both kinds where they are.
func TestTrialsAreShown(t *testing.T) {
	if got := Trials(nil); got != nil {
		t.Errorf("%+v", got)
	}
	set, _ := fleet.NewSet([]fleet.Endpoint{{Address: "10.0.0.1:80", Weight: 1}, {Address: "10.0.0.2:80", Weight: 1}})
	router := route.NewRouter(route.Policy{})
	router.SetMembership(set)
	trials := trial.New(router)
	if got := Trials(trials); got != nil {
		t.Errorf("%+v", got)
	}
	policy := route.Policy{Strategy: route.PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 7}
	trials.Set(trial.Settings{Share: 1, ShareLength: 256, Policy: policy}, trial.Settings{Share: 0.5, ShareLength: 256, Policy: route.Policy{PrefixLength: route.AutoPrefixLength}})
	request := route.Request{Key: 3, Keyed: true, Levels: []uint64{1, 2}, Chars: 600}
	for range 2 {
		a := trial.Asked{Request: request, Key: 3, Chosen: "10.0.0.1:80", Reason: route.ByRandom}
		var slots trial.Slots
		trials.Current().Split.Count(trial.SplitArm, &a)
		trials.Current().Shadow.Decide(&a, &slots)
	}
	got := Trials(trials)
	if len(got) != 2 || got[0].Kind != "shadow" || got[0].Share != 1 || got[0].PrefixLength != "1024" || got[0].ConcurrencyThreshold != "7" || got[0].Moved == nil ||
		got[1].Kind != "split" || got[1].Strategy != "RANDOM" || got[1].PrefixLength != "auto" || got[1].ConcurrencyThreshold != "auto" || got[1].Moved != nil {
		t.Fatalf("%+v", got)
	}
	const half = 512. / 1200
	if main, tried := got[0].Main, got[0].Tried; main.Requests != 2 || *main.Expected != half || *main.BusiestOverMean != 2 || tried.Requests != 2 || *tried.Expected != half {
		t.Errorf("the shadow: %+v, %+v", main, tried)
	}
	if main, tried := got[1].Main, got[1].Tried; main.Requests != 0 || main.Expected != nil || main.BusiestOverMean != nil || tried.Requests != 2 || *tried.Expected != half {
		t.Errorf("the split: %+v, %+v", main, tried)
	}
}

// A split that takes far more or fewer requests than its share is told of, once there are
// enough to tell.
func TestSplitOffItsShare(t *testing.T) {
	for _, tc := range []struct {
		kind        string
		share       float64
		main, tried uint64
		warned      bool
	}{
		{"split", 0.05, 0, 1000, true},
		{"split", 0.05, 1000, 0, true},
		{"split", 0.05, 950, 50, false},
		{"split", 0.05, 860, 140, false},
		{"split", 0.05, 840, 160, true},
		{"split", 0.05, 0, 100, false}, // too few to tell
		{"split", 0.01, 1000, 0, false},
		{"split", 1, 0, 1000, false},
		{"shadow", 0.05, 1000, 1000, false},
	} {
		p := view.Pool{Name: "chat", Trials: []view.Trial{{
			Kind: tc.kind, Share: tc.share, Main: view.Outcome{Requests: tc.main}, Tried: view.Outcome{Requests: tc.tried},
		}}}
		if got := offShares(&p); len(got) > 0 != tc.warned || tc.warned && got[0].Pool != "chat" {
			t.Errorf("%+v: %+v", tc, got)
		}
	}
}

// A decision of the split says so.
func TestArmIsShown(t *testing.T) {
	now := time.Now()
	s := New(now)
	for _, arm := range []trial.Arm{trial.NoArm, trial.MainArm, trial.SplitArm} {
		s.Decided(&extproc.Record{Began: now, Scanned: now, Decided: now, Arm: arm, Decision: route.Decision{Chosen: "10.0.0.1:80", Reason: route.ByRandom}})
	}
	_, decisions, _ := s.Since(Since{Decisions: 10}, now)
	for i, want := range []string{"", "main", "split"} {
		if d := decisions[i]; d.Arm != want || strings.Contains(d.Sentence, "split") != (want == "split") {
			t.Errorf("%+v", d)
		}
	}
}

// A split is judged by what came since its share is what it is, so that none is warned of
// that is raised in steps, or whose shareLength is mended as the warning says; and by
// prompts, as requests without one can only be the main arm's.
func TestSplitIsJudgedByItsOwn(t *testing.T) {
	set, _ := fleet.NewSet([]fleet.Endpoint{{Address: "10.0.0.1:80", Weight: 1}, {Address: "10.0.0.2:80", Weight: 1}})
	router := route.NewRouter(route.Policy{})
	router.SetMembership(set)
	trials := trial.New(router)
	for _, step := range []struct {
		name                    string
		share                   float64
		length                  int
		main, split, unprompted int
		warned                  bool
	}{
		{"a twentieth", 0.05, 4096, 9500, 500, 0, false},
		{"raised to a half", 0.5, 4096, 1000, 1000, 0, false},
		{"one system prompt", 0.05, 256, 0, 10000, 0, true},
		{"the advice is followed", 0.05, 8192, 9500, 500, 0, false},
		{"three of four are no prompts", 0.5, 8192, 1000, 1000, 6000, false},
		{"none is of the split", 0.4, 8192, 1000, 0, 0, true},
	} {
		trials.Set(trial.Settings{}, trial.Settings{Share: step.share, ShareLength: step.length, Policy: route.Policy{Strategy: route.LeastOutstandingRequests}})
		count := func(n int, arm trial.Arm, keyed bool) {
			for range n {
				trials.Current().Split.Count(arm, &trial.Asked{Request: route.Request{Keyed: keyed}, Chosen: "10.0.0.1:80", Reason: route.ByRandom})
			}
		}
		count(step.main, trial.MainArm, true)
		count(step.split, trial.SplitArm, true)
		count(step.unprompted, trial.MainArm, false)
		if got := offShares(&view.Pool{Name: "chat", Trials: Trials(trials)}); len(got) > 0 != step.warned {
			t.Errorf("%s: %+v", step.name, got)
		}
	}
}
