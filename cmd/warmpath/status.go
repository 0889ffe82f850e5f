package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/health"
	"github.com/warmpath/warmpath/internal/rollout"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/xds"
)

// status gathers the state of the program's parts for /readyz and /status.
type status struct {
	p  *program
	mu sync.Mutex

	generation  int
	configError error
	source      discovery.Update
	health      health.View
	rollout     rollout.Status
}

func newStatus(p *program) *status { return &status{p: p, generation: 1} }

func (s *status) configured(generation int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation, s.configError = generation, err
}

func (s *status) sourced(u discovery.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source = u
}

// judged takes a new view and returns the one before.
func (s *status) judged(v health.View) (before health.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.health = s.health, v
	return before
}

func (s *status) rolledOut(r rollout.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rollout = r
}

// ready reports why no requests are routed yet.
func (s *status) ready() error {
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

// statusValue is the JSON of /status.
type statusValue struct {
	Version      string           `json:"version"`
	Config       configValue      `json:"config"`
	Membership   membershipValue  `json:"membership"`
	ControlPlane *xds.Status      `json:"controlPlane,omitempty"`
	Endpoints    []endpointStatus `json:"endpoints"`
}

type configValue struct {
	Generation           int    `json:"generation"`
	Error                string `json:"error,omitempty"`
	Strategy             string `json:"strategy"`
	PrefixLength         any    `json:"prefixLength"`         // a number or "auto"
	ConcurrencyThreshold string `json:"concurrencyThreshold"` // a number or auto
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
	Outstanding int64  `json:"outstanding"`
	// Health is what probes and requests say, Cause why, Share the part of its
	// weight that it has, below 1 in the slow start.
	Health string  `json:"health,omitempty"`
	Cause  string  `json:"cause,omitempty"`
	Share  float64 `json:"share,omitempty"`
}

// value is what /status shows.
func (s *status) value() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	policy := s.p.router.Table().Policy()
	v := statusValue{
		Version: version(),
		Config: configValue{
			Generation: s.generation, Error: text(s.configError), Strategy: policy.Strategy.String(),
			PrefixLength: length(policy), ConcurrencyThreshold: threshold(policy),
		},
		Membership: membershipValue{
			Version:  fmt.Sprintf("%016x", s.source.Set.Version()),
			LastGood: s.source.LastGood, Error: text(s.source.Err), Rollout: text(s.rollout.Err), Leaving: s.rollout.Draining,
		},
		Endpoints: s.endpoints(),
	}
	for _, problem := range s.source.Problems {
		v.Membership.Problems = append(v.Membership.Problems, problem.String())
	}
	if s.p.xds != nil {
		state := s.p.xds.Status()
		v.ControlPlane = &state
	}
	return v
}

// endpoints lists the members, as their source has them, and whatever else
// still runs requests.
func (s *status) endpoints() []endpointStatus {
	listed, inUse := s.source.Set, s.p.router.Membership()
	counts := make(map[string]int64)
	for _, c := range s.p.router.Loads().Snapshot() {
		counts[c.Address] = c.Outstanding
	}
	list := make([]endpointStatus, 0, listed.Len())
	for _, e := range listed.Endpoints() {
		v := endpointStatus{Address: e.Address, State: e.State.String(), Weight: e.Weight, Zone: e.Zone, Outstanding: counts[e.Address]}
		if i, ok := inUse.Index(e.Address); ok {
			v.State = inUse.At(i).State.String()
		}
		if h, ok := s.health.Find(e.Address); ok {
			v.Health, v.Cause, v.Share = h.State.String(), h.Cause, h.Factor
		}
		delete(counts, e.Address)
		list = append(list, v)
	}
	for _, address := range slices.Sorted(maps.Keys(counts)) {
		v := endpointStatus{Address: address, State: "gone", Outstanding: counts[address]}
		if i, ok := inUse.Index(address); ok {
			v.State = inUse.At(i).State.String() // it drains
		} else if counts[address] == 0 {
			continue
		}
		list = append(list, v)
	}
	return list
}

const auto = "auto"

func length(p route.Policy) any {
	if p.PrefixLength == route.AutoPrefixLength {
		return auto
	}
	return p.PrefixLength
}

func threshold(p route.Policy) string {
	if p.ConcurrencyThreshold == route.AutoConcurrencyThreshold {
		return auto
	}
	return strconv.Itoa(p.ConcurrencyThreshold)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
