package sim

import (
	"math"
	"slices"
	"time"
)

// Scale is an autoscaler that makes the fleet larger: as a HorizontalPodAutoscaler
// does, by a number that is read now and then. It never makes it smaller.
type Scale struct {
	// Every is how often it looks, Delay how long a new replica takes until it is a
	// member: for its start, and for loading the model.
	Every, Delay time.Duration
	// Most is how many replicas there may be.
	Most int
}

// Demanding is a policy that knows how many replicas its requests want. Those of
// several routers are added up.
type Demanding interface{ Wanted() float64 }

// scaler is the autoscaler's state.
type scaler struct{ coming int } // replicas that were asked for and are not there

// watch lets the autoscaler look for the first time.
func (r *run) watch() {
	if s := r.config.Scale; s != nil {
		r.schedule(Event{At: r.now + s.Every, Kind: look})
	}
}

// grow asks for the replicas that are missing.
func (r *run) grow() {
	r.watch()
	wanted := 0.0
	for _, p := range r.policies {
		if d, ok := p.(Demanding); ok {
			wanted += d.Wanted()
		}
	}
	up := 0
	for _, x := range r.replicas {
		if x.up {
			up++
		}
	}
	for up+r.scaler.coming < min(int(math.Ceil(wanted)), r.config.Scale.Most) {
		r.scaler.coming++
		r.schedule(Event{At: r.now + r.config.Scale.Delay, Kind: Add})
	}
}

// schedule puts an event in its place.
func (r *run) schedule(e Event) {
	i, _ := slices.BinarySearchFunc(r.events, e, func(a, b Event) int {
		if a.At <= b.At { // behind those of the same time
			return -1
		}
		return 1
	})
	r.events = slices.Insert(r.events, i, e)
}
