package main

import (
	"fmt"
	"math"

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
	Fixed *row `json:"best_fixed,omitempty"`
	// Fastest has the lowest P90, which may be auto.
	Fastest  row  `json:"fastest"`
	Prefixes bool `json:"prefixes"`
}

// robust compares under every variant, on the loaded workloads.
func (s *simulator) robust(workloads []*workload, variants []variant, policies []string, seed uint64) (all []comparison, err error) {
	for _, v := range variants {
		for _, w := range workloads {
			if !w.Loaded {
				continue
			}
			c, err := s.varied(w, v, policies, seed)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	return all, nil
}

func (s *simulator) varied(w *workload, v variant, policies []string, seed uint64) (comparison, error) {
	changed := *w
	if v.cache > 0 {
		changed.Cache = int(float64(w.Cache) * v.cache)
		changed.params.KVTokens = changed.Cache
	}
	if v.replicas > 0 {
		changed.Replicas = v.replicas
		changed.Speed = w.Speed * float64(v.replicas) / float64(w.Replicas)
	}
	c, err := s.compare(&changed, policies, seed+v.seed, 1)
	if err != nil {
		return comparison{}, err
	}
	return newComparison(v.name, c), nil
}

func newComparison(name string, c compared) comparison {
	v := comparison{Variant: name, Workload: c.workload.Name, Speed: c.Speed, Prefixes: c.Prefixes}
	v.Auto, _ = find(c.Rows, auto)
	v.Fastest, _ = fastest(c.Rows)
	if f, ok := bestFixed(c.Rows); ok {
		v.Fixed = &f
	}
	return v
}

// outstanding compares at speeds at which auto has so many requests outstanding at a
// replica. A trace needs enough requests for it, or all of them come at once.
func (s *simulator) outstanding(workloads []*workload, targets []float64, large int, policies []string, seed uint64) (all []comparison, err error) {
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
			c, err := s.compare(&changed, policies, seed, 1)
			if err != nil {
				return nil, err
			}
			all = append(all, newComparison(fmt.Sprintf("%g outstanding", target), c))
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
