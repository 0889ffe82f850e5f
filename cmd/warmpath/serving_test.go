package main

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/rollout"
)

// Health checks are told that requests are decided when there is a membership, and
// no request can be sent to a pool's cluster that Envoy does not have yet.
func TestServingWaitsForThePools(t *testing.T) {
	t.Parallel()
	none := discovery.Update{}
	read := discovery.Update{LastGood: time.Unix(1, 0)}
	broken := discovery.Update{Err: errors.New("not YAML")}
	type state struct {
		source  discovery.Update
		routing bool
		spared  bool
		given   bool
	}
	for name, tc := range map[string]struct {
		pools []state // the default one first
		want  bool
	}{
		"nothing read":                   {[]state{{source: none}}, false},
		"no pools but the default":       {[]state{{source: read}}, true},
		"broken":                         {[]state{{source: broken}}, false},
		"a pool without a set":           {[]state{{source: read, routing: true}, {source: none}}, false},
		"a pool that nobody has given":   {[]state{{source: read, routing: true}, {given: true}}, true},
		"given, and not yet in Envoy":    {[]state{{source: read, routing: true}, {source: read, given: true}}, false},
		"nobody has given any":           {[]state{{given: true}, {given: true}}, false},
		"one that Envoy has from before": {[]state{{source: read, routing: true}, {source: none, spared: true}}, true},
		"all that Envoy has from before": {[]state{{source: none, spared: true}, {source: none, spared: true}}, false},
		"a pool that Envoy lacks":        {[]state{{source: read, routing: true}, {source: read}}, false},
		"a pool that Envoy has":          {[]state{{source: read, routing: true}, {source: read, routing: true}}, true},
		"one of two that Envoy has":      {[]state{{source: read, routing: true}, {source: read, routing: true}, {source: read}}, false},
		"a pool with a broken file":      {[]state{{source: read, routing: true}, {source: broken}}, true},
		"only another than default":      {[]state{{source: broken}, {source: read, routing: true}}, true},
		"every file of all is bad":       {[]state{{source: broken}, {source: broken}}, false},
		"the default not yet routed":     {[]state{{source: read}, {source: read, routing: true}}, true},
	} {
		p := &program{health: health.NewServer()}
		for _, s := range tc.pools {
			status := &poolStatus{given: s.given}
			status.sourced(s.source)
			status.rolledOut(rollout.Status{Routing: s.routing})
			if s.spared {
				status.isSpared()
			}
			p.pools = append(p.pools, &pool{status: status})
		}
		p.setServing(false)
		p.tellServing()
		r, err := p.health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING; got != tc.want {
			t.Errorf("%s: serving %v, want %v", name, got, tc.want)
		}
	}
}
