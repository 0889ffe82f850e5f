package main

import (
	"context"
	"fmt"
	"time"

	"github.com/warmpath/warmpath/bench/chaos/traffic"
)

// controlScenarios are those of the control plane.
func controlScenarios() []scenario {
	return []scenario{
		{name: "control plane cut", lasting: true, brief: true, act: cutControl},
		{name: "restart with a bad file", act: restartWith("endpoints: [")},
		{name: "restart with a file that Envoy would refuse", act: restartWith("endpoints: [{address: gpu-1.example:8000}, {address: gpu-2.example:8000}]\n")},
		{name: "restart with an empty file", act: restartWith("")},
		{name: "restart with an empty membership", act: restartWith("endpoints: []\n"), excuse: nobodyThere},
	}
}

// cutControl changes the membership while Envoy cannot hear of it.
func cutControl(ctx context.Context, r *round) error {
	all := r.all()
	return inOrder(
		func() error { r.control.Cut(); return nil },
		func() error { return r.stack.WriteEndpoints(all[:6]) },
		func() error { return r.more(ctx, 100) },
		func() error { r.control.Mend(); return nil },
		func() error { return r.envoyHas(ctx, 6) },
		func() error { return r.more(ctx, 40) },
		func() error { return r.members(ctx, all) },
	)
}

// restartWith kills warmpath and starts it with a membership file of that text.
// Where the text is no membership Envoy keeps what it has and chooses by itself.
func restartWith(text string) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		if err := r.readMissed(ctx); err != nil {
			return err
		}
		return r.disturbed(ctx, func() error {
			r.stack.Warmpath.Kill()
			return inOrder(
				func() error { return r.stack.WriteRawEndpoints(text) },
				func() error { return r.stack.StartWarmpath(ctx) },
				func() error { return r.pause(ctx, 1500*time.Millisecond) },
				func() error { return r.stack.WriteEndpoints(r.all()) },
				func() error { return r.whole(ctx) },
			)
		})
	}
}

// nobodyThere excuses requests that came while the membership was empty: Envoy
// answers them with 503.
func nobodyThere(r *round, q *traffic.Sent) string {
	if q.Status == 503 && q.Replica == "" && within(q, r.windows) {
		return "the membership was empty"
	}
	return ""
}

// envoyScenarios are those in which Envoy ends.
func envoyScenarios() []scenario {
	return []scenario{
		{name: "Envoy killed", lasting: true, brief: true, act: killEnvoy, excuse: envoyAway},
		{name: "Envoy drained and replaced", lasting: true, act: drainEnvoy},
	}
}

// killEnvoy breaks all requests that run; clients cannot connect until the next one
// listens.
func killEnvoy(ctx context.Context, r *round) error {
	if err := inOrder(
		func() error { return r.underway(ctx) },
		func() error { return r.readPassed(ctx) },
	); err != nil {
		return err
	}
	begin := time.Now()
	err := r.disturbed(ctx, func() error {
		r.stack.Envoy.Kill()
		return inOrder(
			func() error { return r.pause(ctx, 500*time.Millisecond) },
			func() error { return r.startEnvoy(ctx) },
			func() error { return r.whole(ctx) },
		)
	})
	r.cuts = append(r.cuts, window{begin, time.Now()})
	return err
}

// drainEnvoy takes one Envoy out of service and puts another in its place, as a
// balancer in front of them would see it: requests go on while the old one drains,
// and begin at the new one when the old one has answered all.
func drainEnvoy(ctx context.Context, r *round) error {
	if err := inOrder(
		func() error { return r.underway(ctx) },
		func() error { return r.stack.EnvoyCommand(ctx, "/healthcheck/fail") },
		func() error { return r.stack.EnvoyCommand(ctx, "/drain_listeners?graceful&skip_exit") },
		func() error { return r.more(ctx, 80) },
	); err != nil {
		return err
	}
	r.traffic.Pause()
	defer r.traffic.Resume()
	return inOrder(
		func() error { return r.readPassed(ctx) },
		func() error {
			return r.disturbed(ctx, func() error {
				if err := r.stack.Envoy.Stop(10 * time.Second); err != nil {
					return fmt.Errorf("end of Envoy: %w", err)
				}
				return inOrder(
					func() error { return r.startEnvoy(ctx) },
					func() error { return r.whole(ctx) },
				)
			})
		},
	)
}

// envoyAway excuses requests that Envoy's death cut, or that found nobody
// listening.
func envoyAway(r *round, q *traffic.Sent) string {
	if within(q, r.cuts) && (q.Status == 0 || q.Outcome == traffic.Cut) {
		return "Envoy was dead"
	}
	return ""
}

// readPassed keeps what Envoy counts before it ends.
func (r *round) readPassed(ctx context.Context) error {
	n, err := r.stack.PassedOver(ctx)
	r.passed += n - r.passedBefore
	r.passedBefore = n
	return err
}

// startEnvoy starts Envoy again, which counts from 0.
func (r *round) startEnvoy(ctx context.Context) error {
	r.passedBefore = 0
	return r.stack.StartEnvoy(ctx)
}
