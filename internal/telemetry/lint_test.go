package telemetry

import (
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// everything has each kind of event happen, so that each metric has a series.
func everything(t *testing.T) *Metrics {
	t.Helper()
	router := newRouter(t, route.PrefixAware, 2)
	m := NewMetrics(router.Loads())
	m.CountRefused(func() int64 { return 1 })
	m.CountForgotten(func() uint64 { return 1 })
	m.WatchGossip(func() (int, time.Duration) { return 1, time.Second })
	pool := m.OfPool("chat")
	pool.SetEndpoints(map[fleet.State]int{fleet.Healthy: 2})
	pool.MembershipErrors.Inc()
	state := stateOf(router)
	state.Hot = func() []HotPrefix { return []HotPrefix{{"aa", 0.5, 1}} }
	state.Membership = func() Membership { return Membership{Source: "file", Version: 1, Known: true} }
	m.Collect("", state)
	m.CollectTrials("", func() (*trial.ShadowReport, *trial.SplitReport) {
		total := trial.Total{ByReason: make([]uint64, len(route.Reasons())), Characters: 2, Cached: 1, Busiest: 2, Mean: 1}
		total.ByReason[0] = 1
		return &trial.ShadowReport{Real: total, Shadow: total, Moved: 1}, &trial.SplitReport{Main: total, Split: total}
	})
	m.SetEngine("10.0.0.1:80", Engine{Queries: 100, Hits: 64, HitRate: 0.64, Usage: 0.5})
	m.Nacks.WithLabelValues("type").Inc()
	m.PolicyFaults.WithLabelValues("route_metadata", "malformed").Inc()
	m.CertificateExpiry.WithLabelValues("admin").Set(1)
	m.CertificateErrors.WithLabelValues("admin").Inc()
	m.TLSRefused.WithLabelValues("admin").Inc()
	m.Unrecorded.WithLabelValues("queue").Inc()

	o := NewObserver(m, nil)
	r, slot := record(t, router, 42)
	r.Problems, r.Unknown = extproc.Problems()[1:], extproc.Unknown{Pool: true, Component: true, Model: true}
	o.Decided(r)
	r.Served, r.Attempts, r.Missed = "10.0.0.1:80", 2, true
	o.Served(r)
	slot.Release()
	r.Unanswered, r.Arm = true, trial.SplitArm
	r.Inspection = &extproc.Inspection{Result: extproc.InspectionRead, PromptTokens: 9, CachedTokens: 8, FirstToken: r.Decided}
	o.Ended(r)
	o.Panicked(r, nil)
	return m
}

// What is exposed follows the rules of Prometheus, whatever has happened, and each
// metric has help and a series.
func TestLint(t *testing.T) {
	m := everything(t)
	problems, err := testutil.GatherAndLint(m.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	exposed := make(map[string]bool)
	for _, name := range warmpathNames(t, m) {
		exposed[name] = true
	}
	for _, name := range described(m) {
		if !exposed[name] {
			t.Errorf("%s has no series after everything has happened", name)
		}
	}
}

// fqName takes a name from the text form of a descriptor.
var fqName = regexp.MustCompile(`fqName: "(warmpath_[a-z_]+)"`)

// described are the names of all the program's metrics, whether they have series or not.
func described(m *Metrics) (names []string) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		m.Registry().Describe(descriptions)
	}()
	for d := range descriptions {
		if match := fqName.FindStringSubmatch(d.String()); match != nil {
			names = append(names, match[1])
		}
	}
	return names
}
