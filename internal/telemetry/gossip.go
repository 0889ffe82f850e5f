package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Gossip are the metrics of what routers tell each other.
type Gossip struct {
	// Sent and Received count messages, Failed those that could not be sent or made no
	// sense.
	Sent, Received, Failed prometheus.Counter

	state *atomic.Pointer[func() (peers int, age time.Duration)]
}

func (m *Metrics) registerGossip() {
	messages := m.counters("warmpath_gossip_messages_total", "Messages of loads to and from other routers.", "direction")
	m.Gossip = Gossip{
		Sent: messages.WithLabelValues("sent"), Received: messages.WithLabelValues("received"),
		Failed: m.counter("warmpath_gossip_errors_total", "Messages that could not be sent to other routers, or that made no sense."),
		state:  new(atomic.Pointer[func() (int, time.Duration)]),
	}
	now := func() (int, time.Duration) {
		if f := m.Gossip.state.Load(); f != nil {
			return (*f)()
		}
		return 0, 0
	}
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "warmpath_gossip_peers", Help: "Other routers that are heard.",
		}, func() float64 { peers, _ := now(); return float64(peers) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "warmpath_gossip_age_seconds", Help: "How long ago that of them has told of its loads that is silent longest.",
		}, func() float64 { _, age := now(); return age.Seconds() }),
	)
}

// WatchGossip says where the number of the other routers comes from, and the time
// since they spoke.
func (m *Metrics) WatchGossip(state func() (peers int, age time.Duration)) {
	m.Gossip.state.Store(&state)
}
