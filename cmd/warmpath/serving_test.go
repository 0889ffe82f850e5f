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
	}
	for name, tc := range map[string]struct {
		pools []state // the default one first
		want  bool
	}{
		"nothing read":                   {[]state{{source: none}}, false},
		"no pools but the default":       {[]state{{source: read}}, true},
		"broken":                         {[]state{{source: broken}}, false},
		"a pool without a set":           {[]state{{read, true, false}, {none, false, false}}, false},
		"one that Envoy has from before": {[]state{{read, true, false}, {none, false, true}}, true},
		"all that Envoy has from before": {[]state{{none, false, true}, {none, false, true}}, false},
		"a pool that Envoy lacks":        {[]state{{read, true, false}, {read, false, false}}, false},
		"a pool that Envoy has":          {[]state{{read, true, false}, {read, true, false}}, true},
		"one of two that Envoy has":      {[]state{{read, true, false}, {read, true, false}, {read, false, false}}, false},
		"a pool with a broken file":      {[]state{{read, true, false}, {broken, false, false}}, true},
		"only another than default":      {[]state{{broken, false, false}, {read, true, false}}, true},
		"every file of all is bad":       {[]state{{broken, false, false}, {broken, false, false}}, false},
		"the default not yet routed":     {[]state{{read, false, false}, {read, true, false}}, true},
	} {
		p := &program{health: health.NewServer()}
		for _, s := range tc.pools {
			status := new(poolStatus)
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
