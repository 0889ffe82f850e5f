package main

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/warmpath/warmpath/internal/route"
)

// status gathers the state of the program's parts for /readyz and /status.
type status struct {
	p  *program
	mu sync.Mutex

	generation  int
	configError error
}

func newStatus(p *program) *status { return &status{p: p, generation: 1} }

func (s *status) configured(generation int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation, s.configError = generation, err
}

// ready reports why no requests are routed yet. A pool whose membership is at fault
// keeps this process from serving the others no more than it would for itself.
func (s *status) ready() error {
	var waiting error
	routing := false
	for _, one := range s.p.pools {
		err := one.status.ready()
		routing = routing || err == nil
		if err != nil && (waiting == nil || !one.status.settled()) {
			waiting = err
			if one.name != "" {
				waiting = fmt.Errorf("pool %s: %w", one.name, err)
			}
			if !one.status.settled() {
				return waiting
			}
		}
	}
	if routing {
		return nil
	}
	return waiting
}

// statusValue is the JSON of /status.
type statusValue struct {
	Version string      `json:"version"`
	Config  configValue `json:"config"`
	// What follows is of the default pool, and Pools are the others.
	poolValue
	Pools []poolValue `json:"pools,omitempty"`
	// Peers are the other routers, with gossip.
	Peers []peerStatus `json:"peers,omitempty"`
}

type configValue struct {
	Generation int    `json:"generation"`
	Error      string `json:"error,omitempty"`
	policyValue
}

type policyValue struct {
	Strategy             string `json:"strategy"`
	PrefixLength         any    `json:"prefixLength"`         // a number or "auto"
	ConcurrencyThreshold string `json:"concurrencyThreshold"` // a number or auto
}

// value is what /status shows.
func (s *status) value() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.p.pools[0]
	v := statusValue{
		Version:   version(),
		Config:    configValue{Generation: s.generation, Error: text(s.configError), policyValue: policyOf(first.router)},
		poolValue: first.value(), Peers: s.p.peers(),
	}
	for _, one := range s.p.pools[1:] {
		named := one.value()
		p := policyOf(one.router)
		named.Name, named.policyValue = one.name, &p
		v.Pools = append(v.Pools, named)
	}
	v.Endpoints = append(v.Endpoints, s.gone(append(v.Pools, v.poolValue))...)
	return v
}

// gone lists the endpoints that still run requests and are in no pool any more.
func (s *status) gone(pools []poolValue) (list []endpointStatus) {
	member := make(map[string]bool)
	for _, one := range pools {
		for _, e := range one.Endpoints {
			member[e.Address] = true
		}
	}
	for _, c := range s.p.loads.Snapshot() {
		if c.Outstanding > 0 && !member[c.Address] {
			list = append(list, endpointStatus{Address: c.Address, State: "gone", Outstanding: c.Outstanding})
		}
	}
	return list
}

func policyOf(r *route.Router) policyValue {
	p := r.Table().Policy()
	return policyValue{Strategy: p.Strategy.String(), PrefixLength: length(p), ConcurrencyThreshold: threshold(p)}
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
