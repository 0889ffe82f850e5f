package health

import (
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

// Machine holds the state of every member. Its methods are told the time, which
// must not go back; they report whether the view has become another. One
// goroutine uses it.
type Machine struct {
	options Options
	members []*member // in address order
	known   map[string]*member
	// begun says that there has been a membership that is not empty.
	begun bool
	// advanced is the time of the last Advance.
	advanced time.Time

	// Of the members that the membership itself has healthy: all, those that
	// are healthy, unhealthy, and ejected.
	wanted, healthy, unhealthy, ejected int
	panic                               panicking
}

// NewMachine returns a machine without members. The options must be valid.
func NewMachine(o Options) *Machine {
	return &Machine{options: o, known: make(map[string]*member)}
}

// SetMembers takes a membership over. What is known of an endpoint is kept while
// it is a member.
//
// The members of the first one count as healthy until probes say otherwise, or
// a restart of the router would stop the traffic. Later ones start.
func (m *Machine) SetMembers(set fleet.Set, now time.Time) {
	known := make(map[string]*member, set.Len())
	m.members = make([]*member, set.Len())
	for i := range m.members {
		e := set.At(i)
		node, ok := m.known[e.Address]
		if !ok {
			node = m.join(e.Address, now)
		}
		node.wanted = e.State == fleet.Healthy
		m.members[i], known[e.Address] = node, node
	}
	m.known = known
	m.begun = m.begun || set.Len() > 0
	m.count(now)
}

func (m *Machine) join(address string, now time.Time) *member {
	e := &member{Endpoint: Endpoint{Address: address, State: Starting, Since: now}}
	if !m.begun {
		e.State = Healthy
	}
	m.recover(e, now)
	return e
}

// count brings the numbers up to date after a change of state.
func (m *Machine) count(now time.Time) {
	m.wanted, m.healthy, m.unhealthy, m.ejected = 0, 0, 0, 0
	for _, e := range m.members {
		if !e.wanted {
			continue
		}
		m.wanted++
		switch e.State {
		case Healthy:
			m.healthy++
		case Unhealthy:
			m.unhealthy++
		}
		if e.ejected {
			m.ejected++
		}
	}
	m.panic.update(m.wanted, m.healthy, m.unhealthy, now, m.options.Settle)
}

// recover makes an endpoint healthy if nothing stands against it any longer. It
// starts slowly unless it has been in use all the time, because of a panic.
func (m *Machine) recover(e *member, now time.Time) bool {
	inUse := e.wanted && m.panic.phase.uses(e.State)
	if !e.recover(now, m.options) {
		return false
	}
	if m.options.SlowStart > 0 && !inUse {
		e.slow.begin = now
	}
	return true
}

// Probed takes the result of a probe: why it failed, in words, or empty if it
// was good. A result for an address that is not a member is dropped.
func (m *Machine) Probed(address string, now time.Time, failure string) (changed bool) {
	e, ok := m.known[address]
	switch {
	case !ok:
		return false
	case failure != "":
		changed = e.probeFailed(now, failure, m.options)
	default:
		e.failed = 0
		e.good++
		changed = m.recover(e, now)
	}
	if changed {
		m.count(now)
	}
	return changed
}

// Requests takes what requests have told about an endpoint.
func (m *Machine) Requests(address string, now time.Time, o Outcome) (changed bool) {
	e, ok := m.known[address]
	if !ok || m.options.Failures == 0 || e.State != Healthy {
		return false
	}
	if o.Succeeded {
		e.failures = e.failures[:0]
	}
	if o.Failures == 0 || !e.requestsFailed(now, o.Failures, m.options) || !m.mayEject(e) {
		return false
	}
	e.eject(now, o.Last, m.options)
	m.count(now)
	return true
}

// mayEject reports whether failed requests may take one more endpoint out. The
// last healthy one stays in any case.
func (m *Machine) mayEject(e *member) bool {
	// Shares such as 0.29 of 100 come out a little below the number meant.
	limit := int(m.options.MaxEjected*float64(m.wanted) + 1e-9)
	return e.wanted && m.healthy > 1 && m.ejected < limit
}

// Advance takes it that time has passed: ejections and panics end and slow
// starts go on.
func (m *Machine) Advance(now time.Time) (changed bool) {
	m.advanced = now
	changed = m.panic.overdue(now)
	for _, e := range m.members {
		if m.recover(e, now) || e.slow.advance(now, m.options.SlowStart) {
			changed = true
		}
	}
	if changed {
		m.count(now)
	}
	return changed
}

// NextChange returns when Advance may change something, zero for never. It is
// another only after a change.
func (m *Machine) NextChange() (next time.Time) {
	earlier := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, e := range m.members {
		if e.State == Unhealthy && e.heldUntil.After(m.advanced) {
			earlier(e.heldUntil)
		}
		earlier(e.slow.next(m.options.SlowStart))
	}
	earlier(m.panic.until)
	return next
}

// View returns what is known now.
func (m *Machine) View() View {
	v := View{
		Endpoints:  make([]Endpoint, len(m.members)),
		Panic:      m.panic.phase,
		NextChange: m.NextChange(),
	}
	for i, e := range m.members {
		v.Endpoints[i] = e.Endpoint
		v.Endpoints[i].Factor = e.slow.factor(m.options.MinFraction)
	}
	return v
}
