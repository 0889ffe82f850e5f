package health

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

// State is what is known about an endpoint. Whether it drains is not a question
// of its health: the membership says so.
type State uint8

// The states of an endpoint.
const (
	// Starting endpoints are new and have not answered a probe yet. A large
	// model loads for minutes; there is no time after which it counts as ready.
	Starting State = iota
	// Healthy endpoints are chosen.
	Healthy
	// Unhealthy endpoints have failed.
	Unhealthy
)

var stateNames = [...]string{Starting: "starting", Healthy: "healthy", Unhealthy: "unhealthy"}

// String returns the name that metrics use.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Endpoint is what is known about one member.
type Endpoint struct {
	Address string
	State   State
	// Factor is the share of its weight that the endpoint has, more than 0 and
	// at most 1; it is less than 1 in the slow start only.
	Factor float64
	// Since is when it came into its state, and Cause why, for people; Cause is
	// empty when there is nothing to say.
	Since time.Time
	Cause string
}

// View is the health of a membership at one moment. It is immutable.
type View struct {
	Endpoints []Endpoint // in address order
	// Panic says whether endpoints are used that are not healthy.
	Panic Panic
	// NextChange is when the view changes if nothing happens until then, or
	// may; zero when it does not.
	NextChange time.Time
}

// Find returns what is known about an address.
func (v View) Find(address string) (Endpoint, bool) {
	i, found := slices.BinarySearchFunc(v.Endpoints, address, func(e Endpoint, a string) int {
		return strings.Compare(e.Address, a)
	})
	if !found {
		return Endpoint{}, false
	}
	return v.Endpoints[i], true
}

// Count returns how many endpoints are in a state.
func (v View) Count(s State) (n int) {
	for i := range v.Endpoints {
		if v.Endpoints[i].State == s {
			n++
		}
	}
	return n
}

// weightScale is what weights are multiplied by while any endpoint is in its
// slow start, so that a weight of 1 can rise too.
const weightScale = 100

// Apply returns a membership as the router and as Envoy should know it. In both
// an endpoint that is not used for its health is unhealthy; one that the membership itself
// has unhealthy or draining stays so. Only the router's has the weights of the
// slow start: they may then exceed fleet.MaxWeight, and mean the same to it,
// which compares weights; Envoy would reweigh its fallback for every step.
//
// The view may be of another membership. An endpoint that it does not know
// counts as starting. A result without any healthy endpoint is never made of a
// membership that has one: both are then the membership itself.
func Apply(set fleet.Set, view View) (forRouter, forEnvoy fleet.Set) {
	endpoints := set.Endpoints()
	factors := make([]float64, len(endpoints))
	used, rising := false, false
	for i := range endpoints {
		e := &endpoints[i]
		factors[i] = 1
		if e.State != fleet.Healthy {
			continue
		}
		known, ok := view.Find(e.Address)
		if !ok {
			known.Factor = 1
		}
		if !view.Panic.uses(known.State) {
			e.State = fleet.Unhealthy
			continue
		}
		used = true
		factors[i] = known.Factor
		rising = rising || known.Factor < 1
	}
	if !used {
		return set, set
	}
	forEnvoy, _ = fleet.NewSet(endpoints)
	if !rising {
		return forEnvoy, forEnvoy
	}
	for i := range endpoints {
		scaled := math.Round(float64(endpoints[i].Weight) * weightScale * factors[i])
		endpoints[i].Weight = uint32(max(scaled, fleet.MinWeight))
	}
	forRouter, _ = fleet.NewSet(endpoints)
	return forRouter, forEnvoy
}
