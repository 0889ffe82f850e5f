package main

import (
	"time"

	"github.com/warmpath/warmpath/internal/sim"
)

// hotReport is a policy while one prefix has 60 % of the requests, and after.
type hotReport struct {
	Policy string `json:"policy"`
	// Whole says that all of the prompt is the same, not only its beginning.
	Whole bool `json:"whole_prompt"`
	// Busiest is the busiest replica's requests over the mean, in the hot time without
	// its first 30 s.
	Busiest float64 `json:"busiest_over_mean"`
	// Homes and Replicas are how many homes the prefix had in the hot time and how
	// many replicas served it; HomesAfter, ReplicasAfter at the end.
	Homes         int `json:"homes"`
	Replicas      int `json:"replicas"`
	HomesAfter    int `json:"homes_after"`
	ReplicasAfter int `json:"replicas_after"`
	Row           row `json:"row"`
}

// phase counts what happens in a part of the time.
type phase struct {
	from, to         time.Duration
	requests         map[int]int
	hotHomes, hotAts map[int]bool
}

func newPhase(from, to int) *phase {
	return &phase{
		from: time.Duration(from) * time.Second, to: time.Duration(to) * time.Second,
		requests: make(map[int]int), hotHomes: make(map[int]bool), hotAts: make(map[int]bool),
	}
}

func (p *phase) see(now time.Duration, hot bool, c sim.Choice) {
	if now < p.from || now >= p.to {
		return
	}
	p.requests[c.Replica]++
	if hot {
		p.hotHomes[c.Home], p.hotAts[c.Replica] = true, true
	}
}

func (p *phase) busiest(replicas int) float64 {
	most, sum := 0, 0
	for _, n := range p.requests {
		most, sum = max(most, n), sum+n
	}
	return float64(most*replicas) / float64(max(sum, 1))
}

// hotPrefix runs policies on a prefix that becomes hot and cools down. The last
// third of the time after is the end.
func (s *simulator) hotPrefix(h hotPrefix, policies []string, seed uint64) (all []hotReport, table compared, err error) {
	w := &workload{Name: "one prefix 60 %", Replicas: fleetSize, Model: "llama-70b", Speed: 1, Prefixes: true, Loaded: true, params: modelParams("llama-70b")}
	w.Cache = w.params.KVTokens
	for _, whole := range []bool{false, true} {
		jobs, isHot := h.jobs(seed, whole)
		w.Requests = len(jobs)
		var settings []setting
		var during, after []*phase
		for _, p := range policies {
			d, a := newPhase(h.calm+min(30, h.hot/3), h.calm+h.hot), newPhase(h.calm+h.hot+h.cooled*2/3, h.seconds())
			x := w.of(p, jobs, seed)
			x.picked = func(now time.Duration, j *sim.Job, c sim.Choice) { d.see(now, isHot[j], c); a.see(now, isHot[j], c) }
			settings, during, after = append(settings, x), append(during, d), append(after, a)
		}
		outcomes, err := s.all(settings)
		if err != nil {
			return nil, table, err
		}
		for i, p := range policies {
			v := hotReport{
				Policy: p, Whole: whole, Busiest: during[i].busiest(fleetSize), Homes: len(during[i].hotHomes), Replicas: len(during[i].hotAts),
				HomesAfter: len(after[i].hotHomes), ReplicasAfter: len(after[i].hotAts), Row: rowOf(p, outcomes[i]),
			}
			if !whole {
				table.Rows = append(table.Rows, v.Row)
			}
			all = append(all, v)
		}
	}
	table.workload, table.Rounds = *w, 1
	return all, table, nil
}
