package monitoring

import (
	"bytes"
	"testing"
	"text/template"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// minutes is how long a test's series are; a sample and an evaluation each minute.
const minutes = 120

// stored are series that the engine can query.
type stored []storage.Series

// seed parses series in the notation of Prometheus' tests.
func seed(t *testing.T, series map[string]string) stored {
	t.Helper()
	var all stored
	for name, values := range series {
		lset, sequence, err := newParser().ParseSeriesDesc(name + " " + values)
		if err != nil {
			t.Fatalf("%s %s: %v", name, values, err)
		}
		s := promql.Series{Metric: lset}
		for i, v := range sequence {
			if !v.Omitted {
				s.Floats = append(s.Floats, promql.FPoint{T: int64(i) * time.Minute.Milliseconds(), F: v.Value})
			}
		}
		all = append(all, promql.NewStorageSeries(s))
	}
	return all
}

// queryable returns the series as a storage.
func (s stored) queryable() storage.Queryable {
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			var found stored
			for _, one := range s {
				matches := true
				for _, m := range matchers {
					matches = matches && m.Matches(one.Labels().Get(m.Name))
				}
				if matches {
					found = append(found, one)
				}
			}
			return &set{series: found, at: -1}
		},
	}}
}

// set implements storage.SeriesSet.
type set struct {
	series stored
	at     int
}

func (s *set) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series              { return s.series[s.at] }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }

// alert is one that fires.
type alert struct {
	labels labels.Labels
	value  float64
}

// firing evaluates a rule each minute until the end, and returns what fires then: the
// alerts that were active in each evaluation for as long as the rule wants.
func (s stored) firing(t *testing.T, r *rulefmt.Rule) (list []alert) {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: newParser()})
	defer engine.Close()
	wait := int(time.Duration(r.For) / time.Minute)
	since := make(map[uint64]int)
	for now := minutes - wait - 1; now <= minutes; now++ {
		query, err := engine.NewInstantQuery(t.Context(), s.queryable(), nil, r.Expr, time.UnixMilli(int64(now)*time.Minute.Milliseconds()))
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		vector, err := query.Exec(t.Context()).Vector()
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		active := make(map[uint64]int)
		for _, sample := range vector {
			lset := labels.NewBuilder(sample.Metric).Del(model.MetricNameLabel).Labels()
			key := lset.Hash()
			active[key] = now
			if began, was := since[key]; was {
				active[key] = began
			}
			if now == minutes && now-active[key] >= wait {
				list = append(list, alert{lset, sample.F})
			}
		}
		since = active
		query.Close()
	}
	return list
}

// expand writes an annotation of an alert.
func (a alert) expand(t *testing.T, text string) string {
	t.Helper()
	parsed, err := template.New("").Option("missingkey=error").Parse("{{$labels := .Labels}}{{$value := .Value}}" + text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var b bytes.Buffer
	if err := parsed.Execute(&b, map[string]any{"Labels": a.labels.Map(), "Value": a.value}); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return b.String()
}
