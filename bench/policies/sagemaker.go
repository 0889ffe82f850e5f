package main

// sagemakerReport is one of SageMaker's workloads: at the rate where random routing
// queues, and in a closed loop.
type sagemakerReport struct {
	compared
	// Ceiling is the hit rate of one cache for all, 0..1.
	Ceiling float64 `json:"ceiling"`
	// Rates are random and auto at other rates. Speed is the one chosen.
	Rates []rateReport `json:"rates"`
	// Closed are closed loops of InFlight.
	InFlight int   `json:"in_flight"`
	Closed   []row `json:"closed"`
}

type rateReport struct {
	Rate   float64 `json:"requests_per_second"`
	Random row     `json:"random"`
	Auto   row     `json:"auto"`
}

// queueing is by how much random's P90 has to be longer than without load: half of
// it is waiting.
const queueing = 2

// unloaded is a rate at which no request meets another, in requests a second.
const unloaded = 0.02

// sagemaker runs one of the workloads. rates are tried in ascending order.
func (s *simulator) sagemaker(w *workload, rates []float64, inFlight int, policies []string, seed uint64, rounds int) (v sagemakerReport, err error) {
	base := 0.0
	chosen := rates[len(rates)-1]
	found := false
	for _, rate := range append([]float64{unloaded}, rates...) {
		w.Speed = rate
		c, err := s.compare(w, []string{random, auto}, seed, rounds)
		if err != nil {
			return v, err
		}
		v.Rates = append(v.Rates, rateReport{rate, c.Rows[0], c.Rows[1]})
		switch p90 := c.Rows[0].P90; {
		case rate == unloaded:
			base = p90
		case !found && p90 >= queueing*base:
			chosen, found = rate, true
		}
	}
	w.Speed = chosen
	if v.compared, err = s.compare(w, policies, seed, rounds); err != nil {
		return v, err
	}
	for i := range v.Rows {
		v.Rows[i].Percentiles = v.Rows[i].percentiles
	}
	v.InFlight = inFlight
	if v.Closed, err = s.closed(w, inFlight, seed, rounds); err != nil {
		return v, err
	}
	for n := range rounds {
		jobs, err := w.jobs(w.Cache, seed+uint64(n))
		if err != nil {
			return v, err
		}
		v.Ceiling += ceiling(jobs) / float64(rounds)
	}
	return v, nil
}

// closed runs the strategies of the announcement and auto in a closed loop.
func (s *simulator) closed(w *workload, inFlight int, seed uint64, rounds int) (rows []row, err error) {
	for _, p := range []string{random, "least_outstanding", "prefix:1024", "prefix:4096", auto} {
		var settings []setting
		for n := range rounds {
			jobs, err := w.jobs(w.Cache, seed+uint64(n))
			if err != nil {
				return nil, err
			}
			x := w.of(p, jobs, seed+uint64(n))
			x.clients = inFlight
			settings = append(settings, x)
		}
		outcomes, err := s.all(settings)
		if err != nil {
			return nil, err
		}
		rows = append(rows, rowOf(p, outcomes...))
	}
	return rows, nil
}
