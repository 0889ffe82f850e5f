package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/extproc"
)

// phases are what a request's time to its decision goes into. Each has every decided
// request, so that the sums add up: body wait, scan and pick to routing; scan and pick
// to decide.
type phases struct{ bodyWait, scan, pick, decide, routing prometheus.Histogram }

func (m *Metrics) registerPhases() {
	upload := prometheus.ExponentialBuckets(0.0001, 4, 9)      // 0.1 ms to 6.6 s
	computed := prometheus.ExponentialBuckets(0.000001, 4, 10) // 1 µs to 262 ms
	m.phases = phases{
		bodyWait: m.histogram("warmpath_body_wait_seconds",
			"Time from a request's headers to the part of its body that the key takes.", upload),
		scan: m.histogram("warmpath_scan_seconds", "Time to find the prompt in a request's body and compute the key.", computed),
		pick: m.histogram("warmpath_pick_seconds", "Time to choose an endpoint and reserve its slot.", computed),
		decide: m.histogram("warmpath_decide_seconds",
			"Time to compute the key, choose an endpoint and reserve its slot.", computed),
		routing: m.histogram("warmpath_routing_seconds", "Time from a request's headers to the choice of its endpoint.", upload),
	}
}

func (p *phases) observe(r *extproc.Record) {
	seconds := func(from, to time.Time) float64 { return to.Sub(from).Seconds() }
	p.bodyWait.Observe(seconds(r.Began, r.Scanned))
	p.scan.Observe(seconds(r.Scanned, r.Keyed))
	p.pick.Observe(seconds(r.Keyed, r.Decided))
	p.decide.Observe(seconds(r.Scanned, r.Decided))
	p.routing.Observe(seconds(r.Began, r.Decided))
}
