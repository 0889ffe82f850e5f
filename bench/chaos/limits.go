package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// limitScenarios are those in which the machine has no more to give.
func limitScenarios() []scenario {
	return []scenario{
		{name: "no file descriptors left", lasting: true, act: exhaustFiles},
		{name: "recorder cannot write", recording: true, act: blockRecorder},
		{name: "strategy switched", lasting: true, act: switchStrategies},
	}
}

// exhaustFiles leaves warmpath no file descriptor: it can read no file, connect to
// no replica and take no connection, but those that it has go on. Then Envoy's
// connections are cut, so that it has none.
func exhaustFiles(ctx context.Context, r *round) error {
	return r.disturbed(ctx, func() error {
		n, err := r.stack.Warmpath.OpenFiles()
		if err != nil {
			return err
		}
		restore, err := r.stack.Warmpath.LimitFiles(uint64(n))
		if err != nil {
			return err
		}
		err = inOrder(
			func() error { return r.stack.WriteEndpoints(r.all()[:6]) },
			func() error { return r.pause(ctx, time.Second) },
			func() error { r.decisions.Cut(); return nil },
			func() error { return r.pause(ctx, 100*time.Millisecond) },
			func() error { r.decisions.Mend(); return nil },
			func() error { return r.pause(ctx, time.Second) },
			func() error { return r.stack.WriteEndpoints(r.all()) },
		)
		if err = errors.Join(err, restore()); err != nil {
			return err
		}
		return r.whole(ctx)
	})
}

// blockRecorder takes the recorder's folder away and puts a file in its place, so
// that every write fails, as on a full disk.
func blockRecorder(ctx context.Context, r *round) error {
	const written, dropped = "warmpath_recording_written_total", "warmpath_recording_dropped_total"
	if err := r.counted(ctx, written, 1); err != nil {
		return err
	}
	before, err := r.stack.Metric(ctx, dropped, `reason="write"`)
	if err != nil {
		return err
	}
	return inOrder(
		func() error { return os.RemoveAll(r.folder()) },
		func() error { return os.WriteFile(r.folder(), nil, 0o600) },
		func() error { return r.more(ctx, 80) },
		func() error { return r.counted(ctx, dropped, before+1, `reason="write"`) },
		func() error { return os.Remove(r.folder()) },
		func() error {
			now, err := r.stack.Metric(ctx, written)
			if err != nil {
				return err
			}
			return r.counted(ctx, written, now+1)
		},
	)
}

// counted waits until a metric of warmpath has come to n.
func (r *round) counted(ctx context.Context, name string, n float64, labels ...string) error {
	return r.stack.Await(ctx, name, func() error {
		now, err := r.stack.Metric(ctx, name, labels...)
		if err == nil && now < n {
			err = fmt.Errorf("it is %v, want %v", now, n)
		}
		return err
	})
}

// switchStrategies goes through all strategies, back to the round's own.
func switchStrategies(ctx context.Context, r *round) error {
	return r.disturbed(ctx, func() error {
		for _, c := range append(strategies[:len(strategies):len(strategies)], r.config) {
			if err := inOrder(
				func() error { return r.use(ctx, r.scenario, c) },
				func() error { return r.more(ctx, 25) },
			); err != nil {
				return err
			}
		}
		return nil
	})
}

// scenarios are all of them.
func scenarios() []scenario {
	var all []scenario
	for _, some := range [][]scenario{
		routerScenarios(), controlScenarios(), envoyScenarios(), replicaScenarios(), membershipScenarios(), limitScenarios(),
	} {
		all = append(all, some...)
	}
	return all
}
