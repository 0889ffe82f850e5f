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
		if got := offShares(&p); len(got) > 0 != tc.warned {
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

// A split whose share is raised in steps, or whose shareLength is mended as the warning says
// (docs/OPERATIONS.md, trying a policy), is not warned of for what came before the change.
func TestSplitIsJudgedSinceItsShareChanged(t *testing.T) {
	set, _ := fleet.NewSet([]fleet.Endpoint{{Address: "10.0.0.1:80", Weight: 1}, {Address: "10.0.0.2:80", Weight: 1}})
	router := route.NewRouter(route.Policy{})
	router.SetMembership(set)
	trials := trial.New(router)
	policy := route.Policy{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength}
	count := func(arm trial.Arm, n int) {
		for range n {
			trials.Current().Split.Count(arm, &trial.Asked{Chosen: "10.0.0.1:80", Reason: route.ByRandom})
		}
	}
	trials.Set(trial.Settings{}, trial.Settings{Share: 0.05, ShareLength: 4096, Policy: policy})
	count(trial.MainArm, 9500)
	count(trial.SplitArm, 500)
	trials.Set(trial.Settings{}, trial.Settings{Share: 0.5, ShareLength: 4096, Policy: policy})
	count(trial.MainArm, 1000)
	count(trial.SplitArm, 1000)
	if got := offShares(&view.Pool{Name: "chat", Trials: Trials(trials)}); got != nil {
		t.Errorf("half of the requests since the share is 0.5, and: %+v", got)
	}
	trials.Set(trial.Settings{}, trial.Settings{})
	trials.Set(trial.Settings{}, trial.Settings{Share: 0.05, ShareLength: 256, Policy: policy})
	count(trial.SplitArm, 10000) // one system prompt
	trials.Set(trial.Settings{}, trial.Settings{Share: 0.05, ShareLength: 8192, Policy: policy})
	count(trial.MainArm, 9500)
	count(trial.SplitArm, 500)
	if got := offShares(&view.Pool{Name: "chat", Trials: Trials(trials)}); got != nil {
		t.Errorf("the advice was followed, and: %+v", got)
	}
}
