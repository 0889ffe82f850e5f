package load

// SetOthers says of every endpoint how many requests other routers have outstanding
// there.
func (t *Tracker) SetOthers(of func(address string) int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for address, e := range t.counters {
		e.counter.SetOthers(of(address))
	}
}
