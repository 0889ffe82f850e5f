package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// routerScenarios are those in which warmpath itself fails.
func routerScenarios() []scenario {
	return []scenario{
		{name: "router killed", brief: true, act: killRouter},
		{name: "router terminated", act: terminateRouter},
		{name: "router frozen", lasting: true, act: freezeRouter},
		{name: "router stutters", lasting: true, act: stutter},
		{name: "router restarted in a loop", act: restartLoop},
		{name: "router slow", lasting: true, act: slowRouter},
		{name: "router's connections cut", lasting: true, act: cutDecisions},
	}
}

// restart starts warmpath after its end and waits until it decides again.
func (r *round) restart(ctx context.Context) error {
	return inOrder(
		func() error { return r.stack.StartWarmpath(ctx) },
		func() error { return r.whole(ctx) },
	)
}

// tell signals warmpath.
func (r *round) tell(s syscall.Signal) error { return r.stack.Warmpath.Signal(s) }

func killRouter(ctx context.Context, r *round) error {
	return inOrder(
		func() error { return r.underway(ctx) },
		func() error { return r.readMissed(ctx) },
		func() error {
			return r.disturbed(ctx, func() error {
				r.stack.Warmpath.Kill()
				return inOrder(
					func() error { return r.more(ctx, 60) },
					func() error { return r.restart(ctx) },
				)
			})
		},
	)
}

func terminateRouter(ctx context.Context, r *round) error {
	return inOrder(
		func() error { return r.underway(ctx) },
		func() error { return r.readMissed(ctx) },
		func() error {
			return r.disturbed(ctx, func() error {
				if err := r.stack.Warmpath.Stop(10 * time.Second); err != nil {
					return fmt.Errorf("warmpath's end: %w", err)
				}
				return inOrder(
					func() error { return r.more(ctx, 40) },
					func() error { return r.restart(ctx) },
				)
			})
		},
	)
}

// A frozen warmpath is found out by Envoy's health check; until then each request
// waits for message_timeout.
func freezeRouter(ctx context.Context, r *round) error {
	return inOrder(
		func() error { return r.underway(ctx) },
		func() error {
			return r.disturbed(ctx, func() error {
				return inOrder(
					func() error { return r.tell(syscall.SIGSTOP) },
					func() error { return r.pause(ctx, 2500*time.Millisecond) },
					func() error { return r.tell(syscall.SIGCONT) },
				)
			})
		},
	)
}

// stutter gives warmpath no CPU for parts of a second, some below Envoy's timeout
// and some above.
func stutter(ctx context.Context, r *round) error {
	return r.disturbed(ctx, func() error {
		for i := range 8 {
			if err := inOrder(
				func() error { return r.tell(syscall.SIGSTOP) },
				func() error { return r.pause(ctx, []time.Duration{100, 200, 350}[i%3]*time.Millisecond) },
				func() error { return r.tell(syscall.SIGCONT) },
				func() error { return r.pause(ctx, time.Duration(50+r.random.IntN(100))*time.Millisecond) },
			); err != nil {
				return err
			}
		}
		return nil
	})
}

func restartLoop(ctx context.Context, r *round) error {
	if err := r.readMissed(ctx); err != nil {
		return err
	}
	return r.disturbed(ctx, func() error {
		for range 5 {
			r.stack.Warmpath.Kill()
			if err := r.stack.StartWarmpath(ctx); err != nil {
				return err
			}
			if err := r.pause(ctx, time.Duration(r.random.IntN(400))*time.Millisecond); err != nil {
				return err
			}
		}
		return r.whole(ctx)
	})
}

// slowRouter delays what Envoy sends to warmpath, first by less than Envoy waits,
// then by more.
func slowRouter(ctx context.Context, r *round) error {
	return r.disturbed(ctx, func() error {
		defer r.decisions.Delay(0)
		for _, d := range []time.Duration{100, 400} {
			r.decisions.Delay(d * time.Millisecond)
			if err := r.pause(ctx, 1200*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
}

// cutDecisions resets the connections on which decisions are asked for, and with
// them every stream by which requests are counted.
func cutDecisions(ctx context.Context, r *round) error {
	return r.disturbed(ctx, func() error {
		defer r.decisions.Mend()
		for range 3 {
			r.decisions.Cut()
			if err := r.pause(ctx, 300*time.Millisecond); err != nil {
				return err
			}
			r.decisions.Mend()
			if err := r.pause(ctx, 700*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
}

// readMissed keeps what warmpath counts before a process of it ends.
func (r *round) readMissed(ctx context.Context) error {
	n, err := r.stack.Metric(ctx, "warmpath_override_missed_total")
	r.missed += n
	return err
}
