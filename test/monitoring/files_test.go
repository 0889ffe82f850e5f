// Package monitoring tests examples/monitoring with Prometheus' own parser and engine.
package monitoring

import (
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const folder = "../../examples/monitoring/"

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func newParser() parser.Parser { return parser.NewParser(parser.Options{}) }

// rules are the alert rules, which Prometheus finds valid.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(read(t, folder+"alerts.yaml"), false, model.UTF8Validation, newParser(), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.FailNow()
	}
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// dashboard is what is looked at of Grafana's JSON.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []variable
	}
	Panels []panel
}

type variable struct {
	Name, Type string
	Query      json.RawMessage
	Definition string
	Datasource *source
}

type source struct{ Type, UID string }

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               *source
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Targets []target
}

type target struct {
	RefID, Expr, LegendFormat string
	Datasource                *source
}

func board(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, folder+"dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// plain puts values in the place of Grafana's variables.
func plain(expr string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$pool", ".*").Replace(expr)
}

// metric is a row of a table of docs/METRICS.md, which a test of the program compares
// with what it registers.
type metric struct {
	kind   string
	labels map[string]bool
}

var (
	row  = regexp.MustCompile("(?m)^\\| `(warmpath_[a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\|")
	word = regexp.MustCompile("`([^`]+)`")
)

// exposed are the metrics that a Prometheus has of warmpath, and the words that
// docs/METRICS.md knows, values of labels among them.
func exposed(t *testing.T) (metrics map[string]metric, words map[string]bool) {
	t.Helper()
	page := string(read(t, "../../docs/METRICS.md"))
	metrics, words = make(map[string]metric), make(map[string]bool)
	add := func(name, kind string, labels ...string) {
		m := metric{kind, map[string]bool{"instance": true, "job": true, "pod": true}}
		for _, l := range labels {
			m.labels[l] = true
		}
		metrics[name] = m
	}
	for _, match := range row.FindAllStringSubmatch(page, -1) {
		var labels []string
		for _, l := range word.FindAllStringSubmatch(match[3], -1) {
			labels = append(labels, l[1])
		}
		if match[2] != "histogram" {
			add(match[1], match[2], labels...)
			continue
		}
		add(match[1]+"_bucket", "counter", append(labels, "le")...)
		add(match[1]+"_sum", "counter", labels...)
		add(match[1]+"_count", "counter", labels...)
	}
	if len(metrics) < 40 {
		t.Fatalf("found only %d metrics", len(metrics))
	}
	for _, match := range word.FindAllStringSubmatch(page, -1) {
		words[match[1]] = true
	}
	add("up", "gauge")
	add("process_cpu_seconds_total", "counter")
	add("process_resident_memory_bytes", "gauge")
	add("process_open_fds", "gauge")
	add("go_goroutines", "gauge")
	return metrics, words
}
