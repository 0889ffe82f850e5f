package sim

import (
	"math"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/warmpath/warmpath/internal/placement"
)

// fleetView is what a router keeps of its replicas: the basis of the policies to
// compare with.
type fleetView struct {
	members []Member
	load    map[int]int // outstanding requests by replica
}

// Members implements Policy.
func (f *fleetView) Members(_ time.Duration, m []Member) {
	f.members = m
	if f.load == nil {
		f.load = make(map[int]int)
	}
}

// First implements Policy.
func (f *fleetView) First(time.Duration, int, *Job, time.Duration) {}

// Done implements Policy.
func (f *fleetView) Done(_ time.Duration, replica int, _ *Job) { f.load[replica]-- }

func (f *fleetView) take(replica int) Choice {
	f.load[replica]++
	return Choice{Replica: replica}
}

func (f *fleetView) mean() float64 {
	sum := 1
	for _, m := range f.members {
		sum += f.load[m.Replica]
	}
	return float64(sum) / float64(len(f.members))
}

// least is the least loaded member, of equal ones one at random.
func (f *fleetView) least(random uint64) int {
	best, ties := -1, 0
	for _, m := range f.members {
		switch l := f.load[m.Replica]; {
		case best < 0 || l < f.load[best]:
			best, ties = m.Replica, 1
		case l == f.load[best]:
			if ties++; random%uint64(ties) == 0 {
				best = m.Replica
			}
			random = random*6364136223846793005 + 1442695040888963407
			random ^= random >> 33
		}
	}
	return best
}

type roundRobin struct {
	fleetView
	n int
}

// NewRoundRobin goes round.
func NewRoundRobin(router, _ int) Policy { return &roundRobin{n: router} }

// Pick implements Policy.
func (p *roundRobin) Pick(time.Duration, *Query) Choice {
	p.n++
	return p.take(p.members[p.n%len(p.members)].Replica)
}

type twoChoices struct{ fleetView }

// NewTwoChoices chooses the lesser loaded of two at random.
func NewTwoChoices(int, int) Policy { return &twoChoices{} }

// Pick implements Policy.
func (p *twoChoices) Pick(_ time.Duration, q *Query) Choice {
	n := uint64(len(p.members))
	a, b := p.members[q.Random%n].Replica, p.members[(q.Random>>32)%n].Replica
	if p.load[b] < p.load[a] {
		a = b
	}
	return p.take(a)
}

// hashed orders the replicas for a key of a fixed length.
type hashed struct {
	fleetView
	tokens int
	factor float64 // of the mean that a replica may have; 0 for no bound
	index  placement.Index
}

// NewHash is consistent hashing of the first tokens, with a bound of factor times
// the mean load, the next of the order taking over, unless factor is 0. 64 tokens
// and 1.25 stand for KubeAI's prefix hash (100 characters).
func NewHash(tokens int, factor float64) Maker {
	return func(int, int) Policy { return &hashed{tokens: tokens, factor: factor} }
}

// Members implements Policy.
func (p *hashed) Members(now time.Duration, m []Member) {
	p.fleetView.Members(now, m)
	p.index = indexOf(m)
}

func indexOf(m []Member) placement.Index {
	nodes := make([]placement.Node, len(m))
	for i, x := range m {
		nodes[i] = placement.Node{Address: x.Address, Weight: uint32(x.Weight)}
	}
	return placement.New(nodes)
}

// Pick implements Policy.
func (p *hashed) Pick(_ time.Duration, q *Query) Choice {
	key := q.Job.key(p.tokens)
	home, bound := -1, math.Inf(1)
	if p.factor > 0 {
		bound = math.Ceil(p.factor * p.mean())
	}
	best := -1
	for i, m := range p.members {
		if home < 0 || p.index.Before(key, i, home) {
			home = i
		}
		if float64(p.load[m.Replica]) < bound && (best < 0 || p.index.Before(key, i, best)) {
			best = i
		}
	}
	if best < 0 {
		best = home
	}
	c := p.take(p.members[best].Replica)
	c.Key, c.Keyed, c.Home, c.Overflow = key, true, p.members[home].Replica, best != home
	return c
}

// oracle knows what is in the caches.
type oracle struct {
	fleetView
	factor float64
}

// NewOracle chooses the longest match in the true caches, the least loaded of
// equal ones, among those below factor times the mean load unless that is 0.
func NewOracle(factor float64) Maker {
	return func(int, int) Policy { return &oracle{factor: factor} }
}

// Pick implements Policy.
func (p *oracle) Pick(_ time.Duration, q *Query) Choice {
	bound := math.Inf(1)
	if p.factor > 0 {
		bound = math.Ceil(p.factor * p.mean())
	}
	best, longest := -1, -1
	for _, m := range p.members {
		if float64(p.load[m.Replica]) >= bound {
			continue
		}
		n := q.Truth.Cached(m.Replica, q.Job)
		if n > longest || n == longest && p.load[m.Replica] < p.load[best] {
			best, longest = m.Replica, n
		}
	}
	if best < 0 {
		best = p.least(q.Random)
	}
	return p.take(best)
}

// residency is a router's record of what it sent where, one LRU a replica.
type residency struct {
	blocks int
	of     map[int]*simplelru.LRU[uint64, struct{}]
}

func (r *residency) lru(replica int) *simplelru.LRU[uint64, struct{}] {
	if r.of == nil {
		r.of = make(map[int]*simplelru.LRU[uint64, struct{}])
	}
	if r.of[replica] == nil {
		r.of[replica], _ = simplelru.NewLRU[uint64, struct{}](max(r.blocks, 1), nil)
	}
	return r.of[replica]
}

func (r *residency) match(replica int, chunks []uint64) int {
	l := r.lru(replica)
	for i, c := range chunks {
		if !l.Contains(c) {
			return i
		}
	}
	return len(chunks)
}

func (r *residency) touch(replica int, chunks []uint64) {
	l := r.lru(replica)
	for i := len(chunks) - 1; i >= 0; i-- {
		l.Add(chunks[i], struct{}{})
	}
}

// sglang is SGLang's cache-aware rule.
type sglang struct {
	fleetView
	seen               residency
	threshold          float64
	absolute, relative float64
}

// NewSGLang is SGLang's cache-aware policy with its code's defaults: match at
// least 0.5, imbalance by 32 requests and by 1.1.
func NewSGLang(cacheTokens int) Maker {
	return func(int, int) Policy {
		return &sglang{seen: residency{blocks: cacheTokens / ChunkTokens * 9 / 10}, threshold: 0.5, absolute: 32, relative: 1.1}
	}
}

// Pick implements Policy.
func (p *sglang) Pick(_ time.Duration, q *Query) Choice {
	least, most := math.Inf(1), 0.0
	for _, m := range p.members {
		l := float64(p.load[m.Replica])
		least, most = min(least, l), max(most, l)
	}
	best := -1
	if !(most-least > p.absolute && most > p.relative*least) {
		longest := 0
		for _, m := range p.members {
			if n := p.seen.match(m.Replica, q.Job.Chunks); n > longest {
				best, longest = m.Replica, n
			}
		}
		if float64(longest*ChunkTokens) <= p.threshold*float64(q.Job.Tokens) {
			best = -1
		}
	}
	if best < 0 {
		best = p.least(q.Random)
	}
	p.seen.touch(best, q.Job.Chunks)
	return p.take(best)
}

// sticky is llm-d's "sticky until saturated".
type sticky struct {
	fleetView
	seen    residency
	rate    float64 // tokens a second
	tau     float64 // seconds
	pending map[int]float64
	own     map[*Job]float64
}

// NewSticky is llm-d's "sticky until saturated": a warm replica (0.8 of the
// longest match or more) keeps the request unless its uncached tokens pending are
// tau seconds of prefill above those of the least; then the least token load.
func NewSticky(cacheTokens int, rate, tau float64) Maker {
	return func(int, int) Policy {
		return &sticky{
			seen: residency{blocks: cacheTokens / ChunkTokens * 9 / 10}, rate: rate, tau: tau,
			pending: make(map[int]float64), own: make(map[*Job]float64),
		}
	}
}

// Pick implements Policy.
func (p *sticky) Pick(_ time.Duration, q *Query) Choice {
	warm, cold, longest := -1, -1, 0
	for _, m := range p.members {
		n := p.seen.match(m.Replica, q.Job.Chunks)
		if n > longest || n == longest && n > 0 && p.pending[m.Replica] < p.pending[warm] {
			warm, longest = m.Replica, n
		}
		if cold < 0 || p.pending[m.Replica] < p.pending[cold] ||
			p.pending[m.Replica] == p.pending[cold] && p.load[m.Replica] < p.load[cold] {
			cold = m.Replica
		}
	}
	best, matched := cold, 0
	if warm >= 0 && float64(longest*ChunkTokens) >= 0.25*float64(q.Job.Tokens) && p.pending[warm]-p.pending[cold] <= p.rate*p.tau {
		best = warm
	}
	matched = p.seen.match(best, q.Job.Chunks)
	p.seen.touch(best, q.Job.Chunks)
	p.own[q.Job] = float64(q.Job.Tokens - matched*ChunkTokens)
	p.pending[best] += p.own[q.Job]
	return p.take(best)
}

// First implements Policy.
func (p *sticky) First(_ time.Duration, replica int, j *Job, _ time.Duration) {
	p.pending[replica] -= p.own[j]
	delete(p.own, j)
}

// Done implements Policy.
func (p *sticky) Done(now time.Duration, replica int, j *Job) {
	p.First(now, replica, j, 0)
	p.fleetView.Done(now, replica, j)
}

// lmetric is the product of prefill work and running requests.
type lmetric struct{ sticky }

// NewLMetric chooses the least product of the uncached tokens, pending ones
// included, and of the requests (llm-d's and Dynamo's lmetric).
func NewLMetric(cacheTokens int) Maker {
	return func(int, int) Policy {
		return &lmetric{sticky{
			seen:    residency{blocks: cacheTokens / ChunkTokens * 9 / 10},
			pending: make(map[int]float64), own: make(map[*Job]float64),
		}}
	}
}

// Pick implements Policy.
func (p *lmetric) Pick(_ time.Duration, q *Query) Choice {
	best, lowest, uncached := -1, math.Inf(1), 0.0
	for _, m := range p.members {
		u := float64(q.Job.Tokens - p.seen.match(m.Replica, q.Job.Chunks)*ChunkTokens)
		if c := (p.pending[m.Replica] + u) * float64(p.load[m.Replica]+1); c < lowest {
			best, lowest, uncached = m.Replica, c, u
		}
	}
	p.seen.touch(best, q.Job.Chunks)
	p.own[q.Job] = uncached
	p.pending[best] += uncached
	return p.take(best)
}
