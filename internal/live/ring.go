package live

import (
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// ring is the last decisions. Its owners are the records of requests that run, as
// identities: nothing of them is read once the observer's call is over.
type ring struct {
	n       uint64 // decisions so far
	changes uint64 // so far, of any entry
	owners  [MaxDecisions]*extproc.Record
	entries [MaxDecisions]entry
}

// entry is one decision. What clients and Envoy call things is copied into it, so that
// their memory can go.
type entry struct {
	id, change    uint64
	slot          int
	decided       time.Time
	took          time.Duration
	pool          string
	arm           trial.Arm
	decision      route.Decision
	request       word
	model, server word
	cached, chars int

	status, attempts int
	missed, ended    bool
}

// word is a client's or Envoy's word, cut.
type word struct {
	n     uint8
	bytes [64]byte
}

func (w *word) set(s string) { w.n = uint8(copy(w.bytes[:], s)) }

func (w *word) String() string { return string(w.bytes[:w.n]) }

func (g *ring) add(r *extproc.Record, cached, chars int) *entry {
	slot := int(g.n % MaxDecisions)
	g.n++
	g.owners[slot] = r
	e := &g.entries[slot]
	e.id, e.slot, e.decided, e.took = g.n, slot, r.Decided, r.Decided.Sub(r.Scanned)
	e.pool, e.arm, e.cached, e.chars = r.Pool, r.Arm, cached, chars
	e.decision = r.Decision
	e.request.set(r.RequestID)
	e.model.set(r.Model)
	e.server.n, e.status, e.attempts, e.missed, e.ended = 0, 0, 0, false, false
	g.touch(e)
	return e
}

// touch says that an entry is different.
func (g *ring) touch(e *entry) {
	g.changes++
	e.change = g.changes
}

// find returns the entry of a request, nil if newer ones have taken its place.
func (g *ring) find(r *extproc.Record) *entry {
	if g.n == 0 {
		return nil
	}
	if g.n >= MaxDecisions {
		// Entries are in the order of the lock, which is that of the decisions but for
		// a moment.
		const moment = 10 * time.Millisecond
		if oldest := &g.entries[g.n%MaxDecisions]; r.Decided.Before(oldest.decided.Add(-moment)) {
			return nil
		}
	}
	newest := int((g.n - 1) % MaxDecisions)
	for i := newest; i >= 0; i-- {
		if g.owners[i] == r {
			return &g.entries[i]
		}
	}
	for i := MaxDecisions - 1; i > newest; i-- {
		if g.owners[i] == r {
			return &g.entries[i]
		}
	}
	return nil
}

// forget lets go of the record of a request that has ended.
func (g *ring) forget(e *entry) { g.owners[e.slot] = nil }

func (e *entry) served(r *extproc.Record) {
	e.status, e.attempts, e.missed = r.Status, r.Attempts, r.Missed
	e.server.set(r.Served)
}
