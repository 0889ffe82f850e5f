package main

import (
	"time"

	"github.com/warmpath/warmpath/internal/sim"
)

// scalingReport is what the hit rate is in the 30 s after the fleet has changed, over
// several times at which it does.
type scalingReport struct {
	Workload string `json:"workload"`
	// To is the new number of replicas, from 7 to 8 or from 8 to 7.
	To      int    `json:"to"`
	Policy  string `json:"policy"`
	Changes int    `json:"changes"`
	// After is the hit rate in the 30 s, Same in the same 30 s without a change.
	After float64 `json:"hit_rate_after"`
	Same  float64 `json:"hit_rate_without_change"`
	Row   row     `json:"row"`
	// OverBound is how many requests went to a replica at its bound while another had
	// room, of warmpath's automatic prefix length; with every bound that was tried.
	OverBound int `json:"over_bound"`
}

// afterwards is how long a change is looked at.
const afterwards = 30 * time.Second

// lowThreshold is a bound that is reached all the time.
const lowThreshold = 4

// scalingPolicies are auto and plain consistent hashing.
func scalingPolicies() []string { return []string{auto, "hash:1024", "hash:4096", "hash:16384"} }

// scaling changes the fleet at so many times, in a run each, on the workloads with
// prefixes that last long enough.
func (s *simulator) scaling(workloads []*workload, times int, seed uint64) (all []scalingReport, err error) {
	for _, w := range workloads {
		if !w.Loaded || !w.Prefixes {
			continue
		}
		jobs, err := w.jobs(w.Cache, seed)
		if err != nil {
			return nil, err
		}
		length := span(jobs, w.Speed)
		if length < time.Duration(times+2)*afterwards {
			continue
		}
		for _, to := range []int{8, 7} {
			for _, p := range scalingPolicies() {
				r, err := s.scale(w, p, jobs, to, times, length, seed)
				if err != nil {
					return nil, err
				}
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// changesAt are whole windows, spread over the run.
func changesAt(times int, length time.Duration) (list []time.Duration) {
	for i := range times {
		at := length * time.Duration(i+1) / time.Duration(times+1)
		list = append(list, max(at/afterwards, 1)*afterwards)
	}
	return list
}

func (s *simulator) scale(w *workload, policy string, jobs []sim.Job, to, times int, length time.Duration, seed uint64) (scalingReport, error) {
	event := sim.Event{Kind: sim.Add}
	from := 7
	if to == 7 {
		from, event = 8, sim.Event{Kind: sim.Remove, Replica: 3}
	}
	base := w.of(policy, jobs, seed)
	base.fleet, base.window, base.check = equalFleet(w, from), afterwards, policy == auto
	changes := changesAt(times, length)
	settings := []setting{base}
	for _, at := range changes {
		x := base
		event.At = at
		x.events = []sim.Event{event}
		settings = append(settings, x)
	}
	if policy == auto {
		x := settings[len(settings)-1]
		x.threshold = lowThreshold
		settings = append(settings, x)
	}
	outcomes, err := s.all(settings)
	if err != nil {
		return scalingReport{}, err
	}
	r := scalingReport{Workload: w.Name, To: to, Policy: policy, Changes: times, Row: rowOf(policy, outcomes[0])}
	var after, same sim.Window
	for i, at := range changes {
		n := int(at / afterwards)
		sum(&after, outcomes[i+1].result.Windows, n)
		sum(&same, outcomes[0].result.Windows, n)
	}
	r.After, r.Same = rate(after), rate(same)
	for _, o := range outcomes {
		r.OverBound += o.overBound
	}
	return r, nil
}

func sum(to *sim.Window, windows []sim.Window, n int) {
	if n < len(windows) {
		to.Prompt += windows[n].Prompt
		to.Hit += windows[n].Hit
	}
}

func rate(w sim.Window) float64 { return float64(w.Hit) / float64(max(w.Prompt, 1)) }
