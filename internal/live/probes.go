package live

import (
	"slices"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/live/view"
)

// maxProbes is how many decisions of probes are kept: those of a few who probe at once.
const maxProbes = 32

// probes are the last decisions of probes, which on a busy server would be lost among the
// others before anybody asks. Its owners are identities as those of the ring.
type probes struct {
	n       int
	ids     [maxProbes]word
	owners  [maxProbes]*extproc.Record
	entries [maxProbes]entry
}

// add keeps the entry of a request if it is a probe.
func (p *probes) add(r *extproc.Record, e *entry) {
	if r.Probe == "" {
		return
	}
	i := p.n % maxProbes
	p.n++
	p.ids[i].set(r.Probe)
	p.owners[i], p.entries[i] = r, *e
}

func (p *probes) served(r *extproc.Record) {
	if i := p.find(r); i >= 0 {
		p.entries[i].served(r)
	}
}

// ended lets go of the request's record.
func (p *probes) ended(r *extproc.Record) {
	if i := p.find(r); i >= 0 {
		p.entries[i].ended, p.owners[i] = true, nil
	}
}

// find returns the place of a request, -1 if it has none.
func (p *probes) find(r *extproc.Record) int {
	if r.Probe == "" {
		return -1
	}
	return slices.Index(p.owners[:], r)
}

// Probe returns the kept decisions of a probe, as often as Envoy asked for one; the
// newest 32 of all probes are kept.
func (s *Store) Probe(id string) []view.Decision {
	var found []entry
	s.mu.Lock()
	for i := range s.probes.entries {
		if id != "" && s.probes.ids[i].String() == id {
			found = append(found, s.probes.entries[i])
		}
	}
	s.mu.Unlock()
	list := make([]view.Decision, 0, len(found))
	for i := range found {
		v := found[i].view()
		v.Probe = id
		list = append(list, v)
	}
	return list
}
