package main

import "slices"

// compared is all policies on one workload.
type compared struct {
	workload
	Rounds int   `json:"rounds"`
	Rows   []row `json:"rows"`
}

// compare runs policies on a workload, so many rounds of each.
func (s *simulator) compare(w *workload, policies []string, seed uint64, rounds int) (compared, error) {
	var settings []setting
	for n := range rounds {
		jobs, err := w.jobs(w.Cache, seed+uint64(n))
		if err != nil {
			return compared{}, err
		}
		w.Requests = len(jobs)
		for _, p := range policies {
			settings = append(settings, w.of(p, jobs, seed+uint64(n)))
		}
	}
	outcomes, err := s.all(settings)
	if err != nil {
		return compared{}, err
	}
	c := compared{workload: *w, Rounds: rounds}
	for i, p := range policies {
		var mine []outcome
		for n := range rounds {
			mine = append(mine, outcomes[n*len(policies)+i])
		}
		c.Rows = append(c.Rows, rowOf(p, mine...))
	}
	return c, nil
}

// traceTable compares all policies on all traces.
func (s *simulator) traceTable(workloads []*workload, policies []string, seed uint64) (all []compared, err error) {
	for _, w := range workloads {
		c, err := s.compare(w, policies, seed, 1)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// ratio is how a policy's P90 of the time to the first token compares with the best
// of those that do not know the caches, where it compares worst.
type ratio struct {
	Policy   string  `json:"policy"`
	Largest  float64 `json:"largest"`
	Workload string  `json:"workload"`
	// ByWorkload are all, in the order of the workloads.
	ByWorkload []float64 `json:"by_workload"`
}

// ratios are sorted, the best first.
func ratios(all []compared) (list []ratio) {
	if len(all) == 0 {
		return nil
	}
	for _, first := range all[0].Rows {
		v := ratio{Policy: first.Policy}
		for _, c := range all {
			r, ok := find(c.Rows, first.Policy)
			best, _ := fastest(c.Rows)
			if !ok || best.P90 == 0 {
				continue
			}
			x := r.P90 / best.P90
			v.ByWorkload = append(v.ByWorkload, x)
			if x > v.Largest {
				v.Largest, v.Workload = x, c.Name
			}
		}
		list = append(list, v)
	}
	slices.SortStableFunc(list, func(a, b ratio) int {
		switch {
		case a.Largest < b.Largest:
			return -1
		case a.Largest > b.Largest:
			return 1
		}
		return 0
	})
	return list
}

// frontier is auto with thresholds that force ever more balance: hit rate against
// balance.
type frontier struct {
	Workload   string `json:"workload"`
	Thresholds []int  `json:"thresholds"`
	Rows       []row  `json:"rows"` // of the thresholds
}

// frontiers are for the traces with few long sessions, where hits and balance are
// hard to have together.
func (s *simulator) frontiers(workloads []*workload, seed uint64) (all []frontier, err error) {
	for _, w := range workloads {
		if !w.FewSessions {
			continue
		}
		jobs, err := w.jobs(w.Cache, seed)
		if err != nil {
			return nil, err
		}
		f := frontier{Workload: w.Name, Thresholds: []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}}
		var settings []setting
		for _, t := range f.Thresholds {
			x := w.of(auto, jobs, seed)
			x.threshold = t
			settings = append(settings, x)
		}
		outcomes, err := s.all(settings)
		if err != nil {
			return nil, err
		}
		for _, o := range outcomes {
			f.Rows = append(f.Rows, rowOf(auto, o))
		}
		all = append(all, f)
	}
	return all, nil
}
