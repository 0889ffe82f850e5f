package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/health"
	"github.com/warmpath/warmpath/internal/route"
)

// What responses tell of endpoints: a is the chosen one, b another.
func TestLearn(t *testing.T) {
	for name, tc := range map[string]struct {
		record extproc.Record
		want   string
	}{
		"answered":              {extproc.Record{Served: "a", Status: 200, Attempts: 1}, "a answered"},
		"refused":               {extproc.Record{Served: "a", Status: 429, Attempts: 1}, ""},
		"failed":                {extproc.Record{Served: "a", Status: 503, Attempts: 1}, "a server error"},
		"went on to the second": {extproc.Record{Served: "b", Status: 200, Attempts: 2}, "a unreachable, b answered"},
		"tried twice":           {extproc.Record{Served: "a", Status: 200, Attempts: 2}, "a answered"},
		"all failed":            {extproc.Record{Served: "b", Status: 502, Attempts: 3}, "a unreachable, b server error"},
		"Envoy's own 503":       {extproc.Record{Status: 503}, ""},
		"another cluster":       {extproc.Record{Served: "b", Status: 200, Attempts: 2, Missed: true}, "b answered"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.record.Decision = route.Decision{Chosen: "a"}
			var said []string
			learn(&tc.record, func(address string, s health.Signal) { said = append(said, address+" "+s.String()) })
			if got := strings.Join(said, ", "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	learn(&extproc.Record{Served: "b", Status: 200, Attempts: 2}, func(address string, s health.Signal) {
		if address != "b" {
			t.Errorf("nothing was chosen, and %q is %v", address, s)
		}
	})
}

// Every setting of health reaches the prober.
func TestProberOptions(t *testing.T) {
	o := proberOptions(config.Health{
		Path: "/ready", Interval: 3 * time.Second, Timeout: 2 * time.Second,
		FailedProbes: 4, GoodProbes: 5, FailedRequests: 6, SlowStart: 7 * time.Second,
	})
	got := []any{o.Path, o.Interval, o.Timeout, o.Health.Probing, o.Health.FailedProbes, o.Health.GoodProbes, o.Health.Failures, o.Health.SlowStart, o.Health.Settle}
	want := []any{"/ready", 3 * time.Second, 2 * time.Second, true, 4, 5, 6, 7 * time.Second, 8 * time.Second}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if o := proberOptions(config.Health{FailedRequests: 1, Interval: time.Second, Timeout: time.Second}); o.Health.Probing {
		t.Error("probes without a path")
	}
}
