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
	To     int    `json:"to"`
	Policy string `json:"policy"`
	// Changes are those of each seed.
	Changes int `json:"changes"`
	Seeds   int `json:"seeds"`
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
// prefixes that last long enough; where few sessions run, with so many seeds.
func (s *simulator) scaling(workloads []*workload, times, seeds int, seed uint64) (all []scalingReport, err error) {
	for _, w := range workloads {
		if !w.Loaded || !w.Prefixes {
			continue
		}
		jobs, err := w.jobs(w.Cache, seed)
		if err != nil {
			return nil, err
		}
		if span(jobs, w.Speed) < time.Duration(times+2)*afterwards {
			continue
		}
		n := 1
		if w.FewSessions {
			n = seeds
		}
		for _, to := range []int{8, 7} {
			for _, p := range scalingPolicies() {
				r, err := s.scaleAll(w, p, to, times, n, seed)
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

// scaleAll sums up the changes of so many seeds.
func (s *simulator) scaleAll(w *workload, policy string, to, times, seeds int, seed uint64) (scalingReport, error) {
	r := scalingReport{Workload: w.Name, To: to, Policy: policy, Changes: times, Seeds: seeds}
	var after, same sim.Window
	var unchanged []outcome
	for n := range uint64(seeds) {
		jobs, err := w.jobs(w.Cache, seed+n)
		if err != nil {
			return r, err
		}
		changes := changesAt(times, span(jobs, w.Speed))
		outcomes, err := s.scale(w, policy, jobs, to, changes, seed+n)
		if err != nil {
			return r, err
		}
		for i, at := range changes {
			sum(&after, outcomes[i+1].result.Windows, int(at/afterwards))
			sum(&same, outcomes[0].result.Windows, int(at/afterwards))
		}
		for _, o := range outcomes {
			r.OverBound += o.overBound
		}
		unchanged = append(unchanged, outcomes[0])
	}
	r.After, r.Same, r.Row = rate(after), rate(same), rowOf(policy, unchanged...)
	return r, nil
}

// scale runs without a change, with each of them, and auto with a low bound too.
func (s *simulator) scale(w *workload, policy string, jobs []sim.Job, to int, changes []time.Duration, seed uint64) ([]outcome, error) {
	event := sim.Event{Kind: sim.Add}
	from := 7
	if to == 7 {
		from, event = 8, sim.Event{Kind: sim.Remove, Replica: 3}
	}
	base := w.of(policy, jobs, seed)
	base.fleet, base.window, base.check = equalFleet(w, from), afterwards, policy == auto
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
	return s.all(settings)
}

func sum(to *sim.Window, windows []sim.Window, n int) {
	if n < len(windows) {
		to.Prompt += windows[n].Prompt
		to.Hit += windows[n].Hit
	}
}

func rate(w sim.Window) float64 { return float64(w.Hit) / float64(max(w.Prompt, 1)) }
