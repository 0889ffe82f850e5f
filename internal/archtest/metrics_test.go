package archtest

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/telemetry"
)

// Every metric of the program has a row in docs/METRICS.md with its labels, and
// every row a metric.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	got, want := documented(string(page)), registered(t)
	for name, labels := range want {
		if row, ok := got[name]; !ok {
			t.Errorf("docs/METRICS.md: no row of %s", name)
		} else if row != labels {
			t.Errorf("docs/METRICS.md: %s has the labels %q, want %q", name, row, labels)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("docs/METRICS.md: the program has no metric %s", name)
		}
	}
}

// The reasons, problems and other words that are values of labels are explained too.
func TestReasonsAndProblemsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range route.Reasons() {
		if !bytes.Contains(page, []byte("`"+r.String()+"`")) {
			t.Errorf("docs/METRICS.md: the reason %s is not explained", r)
		}
	}
	var words []string
	for _, s := range route.Strategies() {
		words = append(words, s.String())
	}
	for _, r := range extproc.InspectionResults() {
		words = append(words, r.String())
	}
	for _, s := range []fleet.State{fleet.Healthy, fleet.Unhealthy, fleet.Draining} {
		words = append(words, s.String())
	}
	for _, word := range words {
		if !bytes.Contains(page, []byte("`"+word+"`")) {
			t.Errorf("docs/METRICS.md: %s is not explained", word)
		}
	}
	for _, p := range extproc.Problems() {
		want := regexp.MustCompile("(?m)^\\| `" + p.String() + "` \\| [^|]+ \\| [^|]+ \\|$")
		if p != extproc.NoProblem && !want.Match(page) {
			t.Errorf("docs/METRICS.md: the problem %s is not explained", p)
		}
	}
}

// row is a line of a table: name, type, labels, meaning.
var row = regexp.MustCompile("(?m)^\\| `(warmpath_[a-z_]+)` \\| (?:counter|gauge|histogram) \\| ([^|]*) \\| [^|]{10,} \\|$")

// documented returns the labels of each metric on a page, sorted.
func documented(page string) map[string]string {
	metrics := make(map[string]string)
	for _, match := range row.FindAllStringSubmatch(page, -1) {
		metrics[match[1]] = sorted(strings.FieldsFunc(match[2], func(r rune) bool { return strings.ContainsRune("`, –", r) }))
	}
	return metrics
}

// description takes a name and its labels from the text form of a descriptor,
// the only form in which the library gives them away.
var description = regexp.MustCompile(`fqName: "(warmpath_[a-z_]+)".*variableLabels: \{([^}]*)\}`)

// registered returns the labels of each of the program's own metrics, sorted.
func registered(t *testing.T) map[string]string {
	t.Helper()
	descriptions := make(chan *prometheus.Desc)
	m := telemetry.NewMetrics(load.NewTracker())
	m.CountRefused(func() int64 { return 0 })
	m.CountForgotten(func() uint64 { return 0 })
	go func() {
		defer close(descriptions)
		m.Registry().Describe(descriptions)
	}()
	metrics := make(map[string]string)
	for d := range descriptions {
		if match := description.FindStringSubmatch(d.String()); match != nil {
			metrics[match[1]] = sorted(strings.Split(match[2], ","))
		}
	}
	if len(metrics) < 5 {
		t.Fatalf("found only %d metrics: has the text of a descriptor changed?", len(metrics))
	}
	return metrics
}

func sorted(labels []string) string {
	slices.Sort(labels)
	return strings.Join(labels, ",")
}
