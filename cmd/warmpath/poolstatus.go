package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/health"
	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/rollout"
	"github.com/warmpath/warmpath/internal/telemetry"
	"github.com/warmpath/warmpath/xds"
)

// poolStatus gathers the state of a pool's parts.
type poolStatus struct {
	mu      sync.Mutex
	source  discovery.Update
	health  health.View
	rollout rollout.Status
	// spared is set once an Envoy has come that has the pool from before.
	spared bool
	// given: the membership is given from outside, so that nobody knows whether it
	// will be.
	given bool
	// kind is what the configuration calls the source.
	kind string
	// failing is since when the source has confirmed nothing, zero while it does;
	// changed when it last told of another membership.
	failing, changed time.Time
}

func newPoolStatus(m config.Membership, now time.Time) *poolStatus {
	return &poolStatus{given: m.API != nil, kind: m.Kind(), failing: now}
}

func (s *poolStatus) sourced(u discovery.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case u.Err == nil:
		s.failing = time.Time{}
	case s.failing.IsZero(): // until now the source was read, and was as it says
		s.failing = u.At
	}
	if u.Err == nil && (s.changed.IsZero() || u.Set.Version() != s.source.Set.Version()) {
		s.changed = u.At
	}
	s.source = u
}

// membership is what metrics tell of it.
func (s *poolStatus) membership(now time.Time) telemetry.Membership {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := telemetry.Membership{Source: s.kind, Version: s.source.Set.Version(), Known: !s.changed.IsZero()}
	if m.Known {
		m.Unchanged = max(now.Sub(s.changed), 0)
	}
	if !s.failing.IsZero() {
		m.Age = max(now.Sub(s.failing), 0)
	}
	return m
}

// judged takes a new view and returns the one before.
func (s *poolStatus) judged(v health.View) (before health.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.health = s.health, v
	return before
}

func (s *poolStatus) rolledOut(r rollout.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rollout = r
}

// isSpared notes that an Envoy has the pool from before.
func (s *poolStatus) isSpared() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spared = true
}

// known reports whether there is a membership.
func (s *poolStatus) known() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.source.LastGood.IsZero()
}

// settled reports whether a request may be sent to the pool's cluster by its name:
// Envoy has it, from before too, or will not have it soon because the membership is
// at fault or has not been given. Before that Envoy would answer that there is no such
// cluster; to wait longer would send the requests of all pools to the default one.
func (s *poolStatus) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rollout.Routing || s.spared || s.source.Err != nil || s.given && s.source.LastGood.IsZero()
}

// ready reports why no requests are routed yet.
func (s *poolStatus) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.source.LastGood.IsZero():
		return errors.New("no membership has been read yet")
	case !s.rollout.Routing:
		return errors.New("the membership is read; no Envoy has acknowledged it yet")
	}
	return nil
}

// poolValue is what /status shows of a pool.
type poolValue struct {
	Name string `json:"name,omitempty"`
	*policyValue
	Membership   membershipValue  `json:"membership"`
	ControlPlane *xds.Status      `json:"controlPlane,omitempty"`
	Trials       []view.Trial     `json:"trials,omitempty"`
	Endpoints    []endpointStatus `json:"endpoints"`
}

type membershipValue struct {
	Version  string    `json:"version"`
	LastGood time.Time `json:"lastGood"`
	Error    string    `json:"error,omitempty"`
	Problems []string  `json:"problems,omitempty"`
	Rollout  string    `json:"rollout,omitempty"` // why the last change is not in use everywhere
	Leaving  []string  `json:"leaving,omitempty"`
}

type endpointStatus struct {
	Address     string `json:"address"`
	State       string `json:"state"` // "gone" once it has left the membership
	Weight      uint32 `json:"weight,omitempty"`
	Zone        string `json:"zone,omitempty"`
	Priority    uint8  `json:"priority,omitempty"`
	Instance    string `json:"instance,omitempty"`
	Outstanding int64  `json:"outstanding"`
	// Others is what other routers have there, as they told.
	Others   int64    `json:"others,omitempty"`
	Adapters []string `json:"adapters,omitempty"`
	// Health is what probes and requests say, Cause why, Share the part of its
	// weight that it has, below 1 in the slow start.
	Health string  `json:"health,omitempty"`
	Cause  string  `json:"cause,omitempty"`
	Share  float64 `json:"share,omitempty"`
}

// value is what /status shows.
func (o *pool) value() poolValue {
	s := o.status
	s.mu.Lock()
	defer s.mu.Unlock()
	v := poolValue{
		Membership: membershipValue{
			Version:  fmt.Sprintf("%016x", s.source.Set.Version()),
			LastGood: s.source.LastGood, Error: text(s.source.Err), Rollout: text(s.rollout.Err), Leaving: s.rollout.Draining,
		},
		Trials:    live.Trials(o.trials),
		Endpoints: o.endpoints(),
	}
	for _, problem := range s.source.Problems {
		v.Membership.Problems = append(v.Membership.Problems, problem.String())
	}
	if o.envoy != nil {
		state := o.envoy.Status()
		v.ControlPlane = &state
	}
	return v
}

// endpoints lists the members, as their source has them, and those that have left
// and drain. The status is locked.
func (o *pool) endpoints() []endpointStatus {
	listed, inUse := o.status.source.Set, o.router.Membership()
	counts := make(map[string]load.Count)
	for _, c := range o.router.Loads().Snapshot() {
		counts[c.Address] = c
	}
	list := make([]endpointStatus, 0, listed.Len())
	for _, e := range listed.Endpoints() {
		v := endpointStatus{Address: e.Address, State: e.State.String(), Weight: e.Weight, Zone: e.Zone, Priority: e.Priority, Instance: e.Instance, Outstanding: counts[e.Address].Outstanding, Others: counts[e.Address].Others}
		if i, ok := inUse.Index(e.Address); ok {
			v.State, v.Adapters = inUse.At(i).State.String(), inUse.At(i).Adapters.All()
		}
		if h, ok := o.status.health.Find(e.Address); ok {
			v.Health, v.Cause, v.Share = h.State.String(), h.Cause, h.Factor
		}
		list = append(list, v)
	}
	for _, e := range inUse.Endpoints() {
		if _, ok := listed.Index(e.Address); !ok {
			list = append(list, endpointStatus{Address: e.Address, State: e.State.String(), Outstanding: counts[e.Address].Outstanding, Others: counts[e.Address].Others})
		}
	}
	return list
}
