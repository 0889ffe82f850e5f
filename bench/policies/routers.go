package main

// routersReport is a policy with one router and with eight that know nothing of each
// other.
type routersReport struct {
	Workload string `json:"workload"`
	Policy   string `json:"policy"`
	One      row    `json:"one"`
	Eight    row    `json:"eight"`
}

// manyRouters is how many know nothing of each other.
const manyRouters = 8

// routers runs auto on every workload with prefixes, and the others where it is
// loaded.
func (s *simulator) routers(workloads []*workload, policies []string, seed uint64) (all []routersReport, err error) {
	for _, w := range workloads {
		if !w.Prefixes {
			continue
		}
		jobs, err := w.jobs(w.Cache, seed)
		if err != nil {
			return nil, err
		}
		var settings []setting
		for _, p := range policies {
			if p != auto && !w.Loaded {
				continue
			}
			one := w.of(p, jobs, seed)
			eight := one
			eight.routers = manyRouters
			settings = append(settings, one, eight)
		}
		outcomes, err := s.all(settings)
		if err != nil {
			return nil, err
		}
		for i := 0; i < len(settings); i += 2 {
			p := settings[i].policy
			all = append(all, routersReport{Workload: w.Name, Policy: p, One: rowOf(p, outcomes[i]), Eight: rowOf(p, outcomes[i+1])})
		}
	}
	return all, nil
}
