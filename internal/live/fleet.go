package live

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// Pool is a pool as the store is asked about it.
type Pool struct {
	// Name is empty for the default pool.
	Name   string
	Router *route.Router
	// Trials are the policies on trial there; it may be nil.
	Trials *trial.Trials
	// Members lists its endpoints with address, state, cause, zone, weight, and what
	// runs there.
	Members func() []view.Endpoint
}

// maxHot is how many hot prefixes are shown of a pool.
const maxHot = 20

// Fleet returns the pools with what was counted in the last minute, and what an operator
// should look at. It reads every endpoint and takes milliseconds with ten thousand.
func (s *Store) Fleet(pools []Pool, now time.Time) (list []view.Pool, warnings []view.Warning) {
	at := s.secondOf(now)
	list, warnings = make([]view.Pool, 0, len(pools)), []view.Warning{}
	for _, p := range pools {
		v, policy := s.pool(p, at), p.Router.Table().Policy()
		list = append(list, v)
		warnings = append(warnings, skewed(&v, policy)...)
		warnings = append(warnings, overflowing(&v, policy)...)
		warnings = append(warnings, offShares(&v)...)
	}
	return list, warnings
}

func (s *Store) pool(p Pool, now int64) view.Pool {
	table := p.Router.Table()
	policy := table.Policy()
	v := view.Pool{
		Name: PoolName(p.Name), Strategy: policy.Strategy.String(), PrefixLength: prefixLength(policy), ConcurrencyThreshold: threshold(policy),
		Membership: Hex(table.Membership()), Members: p.Members(), Hot: s.hot(p, now), Trials: Trials(p.Trials),
	}
	if v.Members == nil {
		v.Members = []view.Endpoint{} // a list in JSON too
	}
	bounds := make(map[string]int64, len(v.Members))
	p.Router.Bounds(func(address string, _, bound int64) { bounds[address] = bound })
	var total minute
	var read tokens
	for some := range slices.Chunk(v.Members, filledAtOnce) {
		counted, said := s.fill(p.Name, some, bounds, now)
		total.add(counted)
		read.add(said)
	}
	v.Requests, v.Overflow, v.Expected, v.Actual = total.requests, ratio(total.overflow, total.requests), total.expected(), read.rate()
	for i := range v.Members {
		v.Members[i].Share = ratio(v.Members[i].Requests, total.requests)
	}
	return v
}

// filledAtOnce is how many members requests wait for at most: some 0.1 ms, BenchmarkFill.
const filledAtOnce = 256

// fill adds what was counted to the members, at most filledAtOnce, and returns the sums.
func (s *Store) fill(pool string, members []view.Endpoint, bounds map[string]int64, now int64) (total minute, read tokens) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range members {
		m := &members[i]
		m.Bound = bounds[m.Address]
		if e := s.endpoints[place{pool, m.Address}]; e != nil {
			last := e.minute(now)
			m.Requests, m.Overflow, m.Expected = last.requests, ratio(last.overflow, last.requests), last.expected()
			total.add(last)
		}
		if x := s.inspected[m.Address]; x != nil {
			said := x.tokens(now)
			m.Actual = said.rate()
			m.FirstTokenWarm, m.FirstTokenCold = x.first[extproc.CacheWarm].mean(now), x.first[extproc.CacheCold].mean(now)
			m.FirstTokenUnknown = x.first[extproc.CacheUnknown].mean(now)
			read.add(said)
		}
	}
	return total, read
}

// expected is the expected hit rate, nil if nobody knows.
func (m minute) expected() *float64 {
	if m.chars == 0 {
		return nil
	}
	return new(float64(m.cached) / float64(m.chars))
}

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// hotOf is what was hot in a pool in a second.
type hotOf struct {
	second int64
	list   []view.Hot
}

// Hot returns the hot prefixes of a pool, the hottest first, at most 20 of them. They
// are looked for once a second, whoever asks.
func (s *Store) Hot(p Pool, now time.Time) []view.Hot { return s.hot(p, s.secondOf(now)) }

// hot lists the hot prefixes of a pool, anew once a second.
func (s *Store) hot(p Pool, now int64) []view.Hot {
	s.hotting.Lock()
	defer s.hotting.Unlock()
	h, ok := s.hots[p.Name]
	if !ok || h.second != now {
		h = hotOf{now, s.hottest(p)}
		s.hots[p.Name] = h
	}
	return h.list
}

// hottest lists them by the pool's memory, or with a fixed prefix length by the last
// decisions.
func (s *Store) hottest(p Pool) []view.Hot {
	list := []view.Hot{}
	policy := p.Router.Table().Policy()
	if policy.Strategy == route.PrefixAware && policy.PrefixLength != route.AutoPrefixLength {
		return append(list, s.hotKeys(p.Name)...)
	}
	if !policy.NeedsKey() {
		return list
	}
	for _, h := range p.Router.HotPrefixes(maxHot) {
		list = append(list, view.Hot{Key: Hex(h.Key), Depth: h.Depth, Share: h.Share, Homes: h.Homes, Holders: h.Holders})
	}
	return list
}
