package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/stack"
)

// membershipScenarios are those in which the membership changes.
func membershipScenarios() []scenario {
	return []scenario{
		{name: "endpoints added and removed", lasting: true, act: addAndRemove},
		{name: "endpoints drained", lasting: true, act: drain},
		{name: "membership flaps", lasting: true, act: flap},
		{name: "endpoints listed twice", lasting: true, act: duplicate},
		{name: "membership file half written", lasting: true, act: halfWritten},
		{name: "bad membership files", lasting: true, act: badFiles},
		{name: "membership emptied", lasting: true, act: emptied, excuse: nobodyThere},
	}
}

func addAndRemove(ctx context.Context, r *round) error {
	all := r.all()
	for _, n := range []int{6, 5, 7} {
		if err := inOrder(
			func() error { return r.members(ctx, all[:n]) },
			func() error { return r.more(ctx, 40) },
		); err != nil {
			return err
		}
	}
	return r.whole(ctx)
}

func drain(ctx context.Context, r *round) error {
	all := r.all()
	all[r.number%replicas].State = fleet.Draining
	all[(r.number+3)%replicas].State = fleet.Draining
	return inOrder(
		func() error { return r.underway(ctx) },
		func() error { return r.stack.WriteEndpoints(all) },
		func() error { return r.more(ctx, 120) },
		func() error { return r.stack.WriteEndpoints(r.all()) },
		func() error { return r.whole(ctx) },
	)
}

// flap takes two endpoints out and others back in, faster than their streams end.
func flap(ctx context.Context, r *round) error {
	all := r.all()
	for i := range 15 {
		var some []fleet.Endpoint
		for j, e := range all {
			if i%5 == 4 || j != i%len(all) && j != (3*i+1)%len(all) {
				some = append(some, e)
			}
		}
		if err := inOrder(
			func() error { return r.stack.WriteEndpoints(some) },
			func() error { return r.pause(ctx, 150*time.Millisecond) },
		); err != nil {
			return err
		}
	}
	return inOrder(
		func() error { return r.stack.WriteEndpoints(all) },
		func() error { return r.whole(ctx) },
	)
}

// duplicate lists some endpoints twice, one of them with another weight.
func duplicate(ctx context.Context, r *round) error {
	all := r.all()
	double := append(append([]fleet.Endpoint(nil), all...), all[2], all[4])
	double[len(double)-1].Weight = 3
	return inOrder(
		func() error { return r.stack.WriteEndpoints(double) },
		func() error { return r.said(ctx, all[2].Address) },
		func() error { return r.more(ctx, 80) },
		func() error { return r.stack.EnvoyKnows(ctx, replicas) },
		func() error { return r.stack.WriteEndpoints(all) },
		func() error { return r.whole(ctx) },
	)
}

// said waits until warmpath says something of its membership.
func (r *round) said(ctx context.Context, word string) error {
	return r.stack.Await(ctx, "a word on the membership", func() error {
		status, err := r.stack.Status(ctx)
		if err != nil {
			return err
		}
		if said := status.Membership.Error + strings.Join(status.Membership.Problems, " "); !strings.Contains(said, word) {
			return fmt.Errorf("status says %q, want %q in it", said, word)
		}
		return nil
	})
}

// halfWritten writes the file in place, in two parts, and in the second time only
// the first of them for a while: what is cut in the middle of an entry is no YAML,
// or has a bad entry, and takes nobody away that is not named wrong.
func halfWritten(ctx context.Context, r *round) error {
	text := stack.EndpointsText(r.all())
	for _, stop := range []time.Duration{20, 20, 400} {
		// A cut within the first entry's address leaves no member at all.
		cut := strings.Index(text, r.all()[0].Address) + 4
		if err := inOrder(
			func() error { return os.WriteFile(r.stack.EndpointsPath(), []byte(text[:cut]), 0o600) },
			func() error { return r.pause(ctx, stop*time.Millisecond) },
			func() error { return os.WriteFile(r.stack.EndpointsPath(), []byte(text), 0o600) },
			func() error { return r.more(ctx, 30) },
			func() error { return r.stack.EnvoyKnows(ctx, replicas) },
		); err != nil {
			return err
		}
	}
	return r.whole(ctx)
}

func badFiles(ctx context.Context, r *round) error {
	for _, bad := range []struct{ text, word string }{
		{"endpoints: [", "not YAML"},
		{"endpoint: []\n", "endpoint"},
		{"", "endpoints"},
		{"endpoints: [{address: gpu-1.example:8000}]\n", "gpu-1.example:8000"},
	} {
		if err := inOrder(
			func() error { return r.stack.WriteRawEndpoints(bad.text) },
			func() error { return r.said(ctx, bad.word) },
			func() error { return r.more(ctx, 20) },
			func() error { return r.stack.EnvoyKnows(ctx, replicas) },
		); err != nil {
			return err
		}
	}
	return inOrder(
		func() error { return r.stack.WriteEndpoints(r.all()) },
		func() error { return r.whole(ctx) },
	)
}

// emptied takes everybody out on purpose, for a moment.
func emptied(ctx context.Context, r *round) error {
	return r.disturbed(ctx, func() error {
		return inOrder(
			func() error { return r.stack.WriteEndpoints(nil) },
			func() error { return r.envoyHas(ctx, 0) },
			func() error { return r.more(ctx, 40) },
			func() error { return r.stack.WriteEndpoints(r.all()) },
			func() error { return r.whole(ctx) },
		)
	})
}
