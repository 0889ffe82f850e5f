package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/warmpath/warmpath/internal/sim"
)

// variant is a change of the setting. What is 0 stays.
type variant struct {
	name     string
	seed     uint64 // is added
	replicas int    // the speed is changed with it, so that each has the same load
	cache    float64
}

// comparison is auto beside the best rivals of the same run.
type comparison struct {
	Variant  string `json:"variant"`
	Workload string `json:"workload"`
	// Speed is that of the arrivals.
	Speed float64 `json:"speed"`
	Auto  row     `json:"auto"`
	// Fixed is the fixed length in balance with the most hits; there may be none.
	Fixed    *row `json:"best_fixed,omitempty"`
	Prefixes bool `json:"prefixes"`
	// Seeds is over how many the times of Timed and Fastest are taken, all requests
	// together.
	Seeds int `json:"seeds"`
	Timed row `json:"auto_timed"`
	// Fastest has the lowest P90, which may be auto.
	Fastest row `json:"fastest"`
}

// robust compares under every variant, on the loaded workloads. Where few sessions run, the
// times are those of so many seeds: each gives the sessions other homes, and one alone
// tells more of these than of a policy.
func (s *simulator) robust(workloads []*workload, variants []variant, policies []string, seeds int, seed uint64) (all []comparison, err error) {
	for _, v := range variants {
		for _, w := range workloads {
			if !w.Loaded {
				continue
			}
			c, err := s.varied(w, v, policies, seeds, seed)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	return all, nil
}

func (s *simulator) varied(w *workload, v variant, policies []string, seeds int, seed uint64) (comparison, error) {
	changed := *w
	if v.cache > 0 {
		changed.Cache = int(float64(w.Cache) * v.cache)
		changed.params.KVTokens = changed.Cache
	}
	if v.replicas > 0 {
		changed.Replicas = v.replicas
		changed.Speed = w.Speed * float64(v.replicas) / float64(w.Replicas)
	}
	if v.seed > 0 {
		seeds = 1 // that is what is changed
	}
	return s.judge(&changed, v.name, policies, seeds, seed+v.seed)
}

// judge compares auto with policies: with the first seed, and in the times of few
// sessions once more with so many, as far as a policy can be the fastest.
func (s *simulator) judge(w *workload, name string, policies []string, seeds int, seed uint64) (comparison, error) {
	c, err := s.compare(w, policies, seed, 1)
	if err != nil {
		return comparison{}, err
	}
	timed := c
	if w.FewSessions && seeds > 1 {
		if timed, err = s.compare(w, finalists(c.Rows), seed, seeds); err != nil {
			return comparison{}, err
		}
	}
	v := comparison{Variant: name, Workload: w.Name, Speed: w.Speed, Prefixes: w.Prefixes, Seeds: timed.Rounds}
	v.Auto, _ = find(c.Rows, auto)
	v.Timed, _ = find(timed.Rows, auto)
	v.Fastest, _ = fastest(timed.Rows)
	if f, ok := bestFixed(c.Rows); ok {
		v.Fixed = &f
	}
	return v, nil
}

// finalists are auto and the three others with the lowest P90.
func finalists(rows []row) []string {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.P90, b.P90) })
	list := []string{auto}
	for _, r := range rows {
		if r.Policy != auto && len(list) < 4 {
			list = append(list, r.Policy)
		}
	}
	return list
}

// outstanding compares at speeds at which auto has so many requests outstanding at a
// replica. A trace needs enough requests for it, or all of them come at once.
func (s *simulator) outstanding(workloads []*workload, targets []float64, large int, policies []string, seeds int, seed uint64) (all []comparison, err error) {
	for _, target := range targets {
		for _, w := range workloads {
			if !w.Loaded || w.Requests < large {
				continue
			}
			speed, err := s.speedFor(w, target, seed)
			if err != nil {
				return nil, err
			}
			changed := *w
			changed.Speed = speed
			c, err := s.judge(&changed, fmt.Sprintf("%g outstanding", target), policies, seeds, seed)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// speedFor finds the speed, to a tenth of the target: by bisection of the logarithm,
// since the more arrive the more wait.
func (s *simulator) speedFor(w *workload, target float64, seed uint64) (float64, error) {
	jobs, err := w.jobs(w.Cache, seed)
	if err != nil {
		return 0, err
	}
	low, high := w.Speed/1000, w.Speed*1000
	for range 16 {
		middle := math.Sqrt(low * high)
		x := w.of(auto, jobs, seed)
		x.speed = middle
		outcomes, err := s.all([]setting{x})
		if err != nil {
			return 0, err
		}
		switch got := outcomes[0].outstanding; {
		case math.Abs(got-target) <= target/10:
			return middle, nil
		case got < target:
			low = middle
		default:
			high = middle
		}
	}
	return math.Sqrt(low * high), nil
}

// mixedReport is a policy on replicas of which half are twice as fast, with weights
// that say so.
type mixedReport struct {
	Workload string `json:"workload"`
	Rows     []row  `json:"rows"`
}

// mixed runs auto and fixed hashing on such a fleet.
func (s *simulator) mixed(workloads []*workload, seed uint64) (all []mixedReport, err error) {
	policies := append(hashLengths(), auto)
	for _, w := range workloads {
		if !w.Loaded {
			continue
		}
		jobs, err := w.jobs(w.Cache, seed)
		if err != nil {
			return nil, err
		}
		var settings []setting
		for _, p := range policies {
			x := w.of(p, jobs, seed)
			x.fleet, x.speed = mixedFleet(w), w.Speed*3/2
			settings = append(settings, x)
		}
		outcomes, err := s.all(settings)
		if err != nil {
			return nil, err
		}
		v := mixedReport{Workload: w.Name}
		for i, p := range policies {
			v.Rows = append(v.Rows, rowOf(p, outcomes[i]))
		}
		all = append(all, v)
	}
	return all, nil
}

// mixedFleet alternates replicas as they are with those of twice the speed.
func mixedFleet(w *workload) []sim.Replica {
	fleet := equalFleet(w, w.Replicas)
	for i := range fleet {
		fleet[i].Weight = 1 + i%2
		if i%2 == 1 {
			p := &fleet[i].Params
			p.StepTime, p.PrefillToken, p.DecodeSequence, p.ContextToken = p.StepTime/2, p.PrefillToken/2, p.DecodeSequence/2, p.ContextToken/2
		}
	}
	return fleet
}
