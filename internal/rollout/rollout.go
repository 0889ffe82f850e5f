// Package rollout carries a change of membership to the two that must know it,
// Envoy and the router, in the order that loses no request.
//
// An endpoint is added to Envoy first and to the router once Envoy has
// acknowledged it, because a decision for an endpoint that Envoy does not know
// falls back silently. It is removed from the router first and drains, and from
// Envoy last, when its own requests have ended or the drain timeout is over:
// removal would not cut them, but Envoy forgets that they run.
package rollout

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

// ControlPlane is the Envoy side.
type ControlPlane interface {
	// Publish offers a membership to every Envoy.
	Publish(fleet.Set) (generation uint64, err error)
	// Joined waits until an Envoy is connected.
	Joined(ctx context.Context) error
	// Acked waits until every connected Envoy has acknowledged the generation
	// or a later one.
	Acked(ctx context.Context, generation uint64) error
}

// Membership is what both sides are to know. The two sets have the same
// addresses; weights and states may differ.
type Membership struct{ Router, Envoy fleet.Set }

// Router is the deciding side.
type Router interface {
	SetMembership(fleet.Set)
	// Outstanding returns the requests that run at an endpoint.
	Outstanding(address string) int64
}

// Options are the times of a rollout.
type Options struct {
	// DrainTimeout is how long a removed endpoint may finish its requests.
	DrainTimeout time.Duration
	// AckTimeout is how long a new endpoint waits for Envoy's acknowledgement
	// before the router uses it all the same: one frozen Envoy must not keep
	// new capacity from the others. 0 means 2 s.
	AckTimeout time.Duration
	// Poll is how often a draining endpoint's requests are looked at. 0 means
	// 50 ms.
	Poll time.Duration
}

// retryInterval is the time between two tries to publish what was refused.
const retryInterval = time.Second

// Status is the state of a rollout for people.
type Status struct {
	// Err is why the present membership is not in use everywhere; nil once every
	// connected Envoy has acknowledged it.
	Err error
	// Draining are the endpoints that have left the membership but not Envoy.
	Draining []string
	// Routing is set once the router has a membership to decide on.
	Routing bool
}

// Rollout owns the published membership. It has one goroutine, that of Run.
type Rollout struct {
	options Options
	envoy   ControlPlane // nil when Envoy has its endpoints from elsewhere
	router  Router
	report  func(Status)

	members map[string]member
	// generation is the last one published, and err why it is not in use.
	generation uint64
	err        error
	retryAt    time.Time // when to publish again; zero unless publishing failed
	routing    bool
}

// member is an endpoint that Envoy knows or is to know.
type member struct {
	router, envoy fleet.Endpoint
	// confirmed: Envoy has it, or had the time to; the router may choose it.
	confirmed bool
	// leaves is when its drain ends at the latest; zero unless it has left.
	leaves time.Time
}

// New returns a rollout. envoy may be nil, report too; report is called from
// Run after every change and must not block.
func New(options Options, envoy ControlPlane, router Router, report func(Status)) *Rollout {
	if options.AckTimeout == 0 {
		options.AckTimeout = 2 * time.Second
	}
	if options.Poll == 0 {
		options.Poll = 50 * time.Millisecond
	}
	if report == nil {
		report = func(Status) {}
	}
	return &Rollout{options: options, envoy: envoy, router: router, report: report, members: make(map[string]member)}
}

// Run applies each membership that comes on updates until ctx ends. Applying
// one may take AckTimeout; a sender should replace one that was not received.
func (r *Rollout) Run(ctx context.Context, updates <-chan Membership) {
	poll := time.NewTicker(r.options.Poll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-updates:
			r.merge(m, time.Now())
			r.apply(ctx)
		case <-poll.C:
			r.tick(ctx)
		}
	}
}

// merge takes a wanted membership over into members.
func (r *Rollout) merge(wanted Membership, now time.Time) {
	for i := range wanted.Envoy.Len() {
		e := wanted.Envoy.At(i)
		m := r.members[e.Address]
		m.router, m.envoy, m.leaves = e, e, time.Time{} // it may have come back while it drained
		if j, ok := wanted.Router.Index(e.Address); ok {
			m.router = wanted.Router.At(j)
		}
		r.members[e.Address] = m
	}
	for address, m := range r.members {
		if _, stays := wanted.Envoy.Index(address); stays || !m.leaves.IsZero() {
			continue
		}
		m.router.State, m.envoy.State, m.leaves = fleet.Draining, fleet.Draining, now.Add(r.options.DrainTimeout)
		r.members[address] = m
	}
}

// apply carries members to both sides. What left stops being chosen at once;
// what came is chosen when Envoy has it.
func (r *Rollout) apply(ctx context.Context) {
	r.router.SetMembership(r.forRouter())
	r.err = r.publish(ctx)
	r.retryAt = time.Time{}
	switch {
	case ctx.Err() != nil:
		return
	case r.err == nil || errors.Is(r.err, context.DeadlineExceeded):
		for address, m := range r.members {
			m.confirmed = true
			r.members[address] = m
		}
		r.routing = true
		r.router.SetMembership(r.forRouter())
	default: // Envoy was not told, or refuses: what is new would fall back
		r.retryAt = time.Now().Add(retryInterval)
	}
	r.tell()
}

// forRouter returns the members that the router may choose.
func (r *Rollout) forRouter() fleet.Set {
	var endpoints []fleet.Endpoint
	for _, m := range r.members {
		if m.confirmed {
			endpoints = append(endpoints, m.router)
		}
	}
	set, _ := fleet.NewSet(endpoints)
	return set
}

func (r *Rollout) forEnvoy() fleet.Set {
	var endpoints []fleet.Endpoint
	for _, m := range r.members {
		endpoints = append(endpoints, m.envoy)
	}
	set, _ := fleet.NewSet(endpoints)
	return set
}

// publish tells Envoy of all members and waits for it. When the router has
// nothing yet, this process has just started: an Envoy that runs and has an
// older membership is then on its way here, so its arrival is waited for too.
func (r *Rollout) publish(ctx context.Context) (err error) {
	if r.envoy == nil {
		return nil
	}
	if r.generation, err = r.envoy.Publish(r.forEnvoy()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.options.AckTimeout)
	defer cancel()
	if !r.routing {
		if r.envoy.Joined(ctx) != nil {
			return nil // no Envoy at all: nobody who could fall back
		}
	}
	return r.envoy.Acked(ctx, r.generation)
}

// tick takes out the endpoints that have drained, publishes again what was
// refused, and notices an acknowledgement that came late.
func (r *Rollout) tick(ctx context.Context) {
	now := time.Now()
	if r.removeDrained(now) || !r.retryAt.IsZero() && !now.Before(r.retryAt) {
		r.apply(ctx)
		return
	}
	if errors.Is(r.err, context.DeadlineExceeded) && r.acked() {
		r.err = nil
		r.tell()
	}
}

// acked asks without waiting.
func (r *Rollout) acked() bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return r.envoy.Acked(ctx, r.generation) == nil
}

// removeDrained forgets the members that have left and run nothing more.
func (r *Rollout) removeDrained(now time.Time) (removed bool) {
	for address, m := range r.members {
		if !m.leaves.IsZero() && (r.router.Outstanding(address) == 0 || !now.Before(m.leaves)) {
			delete(r.members, address)
			removed = true
		}
	}
	return removed
}

func (r *Rollout) tell() {
	status := Status{Err: r.err, Routing: r.routing}
	for address, m := range r.members {
		if !m.leaves.IsZero() {
			status.Draining = append(status.Draining, address)
		}
	}
	slices.Sort(status.Draining)
	r.report(status)
}
