package main

import (
	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/health"
	"github.com/warmpath/warmpath/internal/health/prober"
	"github.com/warmpath/warmpath/internal/rollout"
)

// judge starts to judge the endpoints' health, if the configuration wants that.
func (o *pool) judge() (err error) {
	h := o.config.Health
	if h.Path == "" && h.FailedRequests == 0 {
		return nil
	}
	o.prober, err = prober.New(proberOptions(h), func(set fleet.Set, view health.View) {
		o.tellHealth(o.status.judged(view), view)
		forRouter, forEnvoy := health.Apply(set, view)
		o.members.set(rollout.Membership{Router: forRouter, Envoy: forEnvoy})
	})
	return err
}

func proberOptions(h config.Health) prober.Options {
	o := prober.Defaults()
	o.Health.Probing = h.Path != ""
	o.Health.FailedProbes, o.Health.GoodProbes = h.FailedProbes, h.GoodProbes
	o.Health.Failures, o.Health.SlowStart = h.FailedRequests, h.SlowStart
	o.Interval, o.Timeout = h.Interval, h.Timeout
	// A round of probes, and what may have come in between.
	o.Health.Settle = 2*h.Interval + h.Timeout
	if h.Path != "" {
		o.Path = h.Path
	}
	return o
}

// tellHealth logs what has become another since the view before.
func (o *pool) tellHealth(before, now health.View) {
	o.metrics.HealthPanic.Set(0)
	if now.Panic == health.Panicking {
		o.metrics.HealthPanic.Set(1)
	}
	if now.Panic == health.Panicking && before.Panic != health.Panicking {
		o.log.Error("no endpoint is healthy; all of them are used")
	}
	for _, e := range now.Endpoints {
		was, known := before.Find(e.Address)
		switch {
		case known && was.State == e.State, !known && e.State == health.Healthy:
		case e.State == health.Unhealthy:
			o.log.Warn("endpoint is unhealthy", "endpoint", e.Address, "cause", e.Cause)
		default:
			o.log.Info("endpoint is "+e.State.String(), "endpoint", e.Address)
		}
	}
}

// learn reports what a response tells. An answer of Envoy's own (r.Served is
// empty) tells nothing: its 503 may come from a direct response or from a full
// circuit breaker. Neither does it that Envoy passed the chosen endpoint over
// (r.Missed): the request's route may lead to another cluster.
func learn(r *extproc.Record, report func(address string, s health.Signal)) {
	if r.Served == "" {
		return
	}
	if chosen := r.Decision.Chosen; r.Attempts > 1 && r.Served != chosen && chosen != "" && !r.Missed {
		report(chosen, health.Unreachable)
	}
	if signal, tells := health.SignalOf(r.Status); tells {
		report(r.Served, signal)
	}
}
