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
	"maps"
	"slices"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

// ControlPlane is the Envoy side.
type ControlPlane interface {
	// Publish offers a membership to every Envoy.
	Publish(fleet.Set) (generation uint64, err error)
	// Acked waits until every connected Envoy has acknowledged the generation
	// or a later one.
	Acked(ctx context.Context, generation uint64) error
}

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

// Status is the state of a rollout for people.
type Status struct {
	// Err is why the last publication failed or was not acknowledged in time.
	Err error
	// Draining are the endpoints that have left the membership but not Envoy.
	Draining []string
}

// Rollout owns the published membership. It has one goroutine, that of Run.
type Rollout struct {
	options Options
	envoy   ControlPlane // nil when Envoy has its endpoints from elsewhere
	router  Router
	report  func(Status)

	wanted fleet.Set
	// known is what Envoy was told, by address.
	known map[string]fleet.Endpoint
	// leaving are the endpoints that drain, with the time their drain ends.
	leaving map[string]time.Time
}

// New returns a rollout. envoy may be nil, report too; report is called from
// Run after every step and must not block.
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
	return &Rollout{
		options: options, envoy: envoy, router: router, report: report,
		known: make(map[string]fleet.Endpoint), leaving: make(map[string]time.Time),
	}
}

// Run applies each membership that comes on updates until ctx ends. A sender
// that has a newer membership may replace one that was not received yet.
func (r *Rollout) Run(ctx context.Context, updates <-chan fleet.Set) {
	poll := time.NewTicker(r.options.Poll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case set := <-updates:
			r.apply(ctx, set)
		case <-poll.C:
			r.removeDrained(ctx)
		}
	}
}

// apply takes a new membership over.
func (r *Rollout) apply(ctx context.Context, wanted fleet.Set) {
	r.wanted = wanted
	added := r.merge(time.Now())
	// What left stops being chosen at once, what came is not chosen yet.
	r.router.SetMembership(r.published(added))
	err := r.publish(ctx)
	r.router.SetMembership(r.published(nil))
	r.report(r.status(err))
}

// merge brings known and leaving in line with the wanted membership and
// returns the addresses that Envoy does not know yet.
func (r *Rollout) merge(now time.Time) (added map[string]bool) {
	added = make(map[string]bool)
	for _, e := range r.wanted.Endpoints() {
		if _, known := r.known[e.Address]; !known {
			added[e.Address] = true
		}
		delete(r.leaving, e.Address) // it came back while it drained
		r.known[e.Address] = e
	}
	for address, e := range r.known {
		if _, member := r.wanted.Index(address); member {
			continue
		}
		if _, drains := r.leaving[address]; !drains {
			r.leaving[address] = now.Add(r.options.DrainTimeout)
		}
		e.State = fleet.Draining
		r.known[address] = e
	}
	return added
}

// published returns the known endpoints without those left out.
func (r *Rollout) published(without map[string]bool) fleet.Set {
	var endpoints []fleet.Endpoint
	for address, e := range r.known {
		if !without[address] {
			endpoints = append(endpoints, e)
		}
	}
	set, _ := fleet.NewSet(endpoints)
	return set
}

// publish tells Envoy what is known and waits for it.
func (r *Rollout) publish(ctx context.Context) error {
	if r.envoy == nil {
		return nil
	}
	generation, err := r.envoy.Publish(r.published(nil))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.options.AckTimeout)
	defer cancel()
	return r.envoy.Acked(ctx, generation)
}

// removeDrained takes the endpoints out that have left and run nothing more.
func (r *Rollout) removeDrained(ctx context.Context) {
	now, removed := time.Now(), false
	for address, deadline := range r.leaving {
		if r.router.Outstanding(address) == 0 || !now.Before(deadline) {
			delete(r.leaving, address)
			delete(r.known, address)
			removed = true
		}
	}
	if !removed {
		return
	}
	r.router.SetMembership(r.published(nil))
	r.report(r.status(r.publish(ctx)))
}

func (r *Rollout) status(err error) Status {
	return Status{Err: err, Draining: slices.Sorted(maps.Keys(r.leaving))}
}
