package extproc

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/warmpath/warmpath/internal/route"
)

// TestScripts plays streams as Envoy sends them and pins every answer. Rewrite
// with -rewrite and read the difference: what changes there changes for users.
//
//	stream [strategy=NAME] [endpoints=N] [pools] [said=POOL] [panic=WHERE] [end=canceled] [send=fails]
func TestScripts(t *testing.T) {
	reached := make(map[Problem]bool)
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := newScript(t, d)
			out := s.run(t, d.Input)
			for _, r := range s.observer.records {
				for _, p := range r.Problems {
					reached[p] = true
				}
			}
			return out
		})
	})
	for _, p := range Problems() {
		if p != NoProblem && !reached[p] {
			t.Errorf("no script reaches the problem %s", p)
		}
	}
}

func newScript(t *testing.T, d *datadriven.TestData) *script {
	t.Helper()
	policy, endpoints, settings, pools := prefixAware(), 3, testSettings, false
	s := &script{observer: new(recorder), end: io.EOF}
	for _, a := range d.CmdArgs {
		var err error
		switch a.Key {
		case "strategy":
			policy.Strategy, err = route.ParseStrategy(a.Vals[0])
		case "endpoints":
			_, err = fmt.Sscan(a.Vals[0], &endpoints)
		case "inspect":
			_, err = fmt.Sscan(a.Vals[0], &settings.Inspect)
		case "auto":
			policy.PrefixLength = route.AutoPrefixLength
		case "tell":
			settings.DecisionMetadata, settings.DecisionHeader = true, true
		case "pools":
			pools = true
		case "said":
			settings.Policies = saying{ChosenPolicy{Pool: a.Vals[0]}}
		case "panic":
			s.panicIn = a.Vals[0]
		case "bodies":
			_, err = fmt.Sscan(a.Vals[0], &settings.TotalBodies)
		case "end":
			s.end = errCanceled
		case "send":
			s.sendErr = io.ErrClosedPipe
		default:
			err = fmt.Errorf("no argument %q", a.Key)
		}
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	s.observer.panicIn = s.panicIn
	random := one
	if s.panicIn == "random" {
		random = func() uint64 { panic("no randomness left") }
	}
	router := newRouter(t, policy, endpoints)
	if pools {
		s.server = NewForPools(somePools(t, router), settings, s.observer, random)
	} else {
		s.server = New(router, settings, s.observer, random)
	}
	return s
}

// TestProblems pins what is done about each problem.
func TestProblems(t *testing.T) {
	datadriven.RunTest(t, "testdata/problems", func(*testing.T, *datadriven.TestData) string {
		var b strings.Builder
		for _, p := range Problems() {
			fmt.Fprintf(&b, "%-16s %s\n", p, p.Action())
		}
		return b.String()
	})
}
