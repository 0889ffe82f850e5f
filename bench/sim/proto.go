package sim

import (
	"math"
	"slices"
	"time"

	"github.com/warmpath/warmpath/internal/placement"
)

// protoOptions are what the research varies.
type protoOptions struct {
	alpha   float64 // homes per share of N
	window  float64 // requests
	cost    bool
	table   bool
	spill   float64
	flat    bool // chad: first level that is not hot, over all
	maxLvl  int
	rate    float64
	a       float64
	eps     float64
	leave   float64
	routers int
	hyst    float64
	rho     float64
	hot     bool
	nobound bool
	nokset  bool
	b1, b2  float64
	floor   float64
	leaky   bool
	table2  float64
}

type proto struct {
	fleetView
	o       protoOptions
	index   placement.Index
	heat    map[uint64]*heatCell
	total   float64
	epoch   float64
	seen    residency
	pending map[int]float64
	own     map[*Job]float64
	byID    map[int]int
	until   map[int]time.Duration
	homesN  map[uint64]int
}

type heatCell struct {
	count float64
	at    float64 // total when last updated
}

func newProto(o protoOptions, blocks int) *proto {
	return &proto{o: o, heat: make(map[uint64]*heatCell), seen: residency{blocks: blocks}, pending: make(map[int]float64), own: make(map[*Job]float64), until: make(map[int]time.Duration)}
}

func (p *proto) Members(now time.Duration, m []Member) {
	p.fleetView.Members(now, m)
	p.index = indexOf(m)
	p.byID = make(map[int]int)
	for i, x := range m {
		p.byID[x.Replica] = i
	}
}

// bump counts a level and returns its recent share of the requests.
func (p *proto) bump(h uint64) float64 {
	c := p.heat[h]
	if c == nil {
		c = &heatCell{at: p.total}
		p.heat[h] = c
	}
	c.count *= math.Exp2(-(p.total - c.at) / p.o.window)
	c.at = p.total
	c.count++
	// the sum of a decaying count of all requests
	norm := p.o.window / math.Ln2
	if p.total < norm*3 {
		norm *= 1 - math.Exp2(-(p.total+1)/p.o.window)
	}
	return c.count / max(norm, p.o.floor)
}

func levelsOf(n, maxLvl int) []int {
	var l []int
	for i := 1; i <= n && i <= maxLvl; {
		l = append(l, i)
		switch {
		case i < 32:
			i++
		case i < 128:
			i += 4
		default:
			i += 16
		}
	}
	return l
}

// set returns the homes of a job in order, and how many of them are its own.
func (p *proto) set(j *Job) (order []int, k int, key uint64, depth int, hotDepth int) {
	n := len(p.members)
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	k = n
	key = j.Whole
	first := true
	var rest []int
	for _, l := range levelsOf(len(j.Chunks), p.o.maxLvl) {
		h := j.Chunks[l-1]
		share := p.bump(h)
		if k == 1 {
			continue // counted all the same
		}
		want := int(math.Ceil(p.o.alpha*share*float64(n) - 1e-9))
		if p.o.nokset && want > 1 {
			want = n
		}
		if p.o.flat {
			if want <= 1 {
				slices.SortFunc(s, func(a, b int) int { return p.before(h, a, b) })
				key, k, depth = h, 1, l
			} else {
				hotDepth = l
			}
			continue
		}
		want = min(max(want, 1), k)
		if want < k || first {
			slices.SortFunc(s, func(a, b int) int { return p.before(h, a, b) })
			rest = append(slices.Clone(s[want:]), rest...)
			s = s[:want]
			k = want
			key, depth = h, l
		}
		if want > 1 {
			hotDepth = l
		}
		first = false
	}
	if first || k > 1 {
		// a leaf that is hot, or a short prompt
		if first {
			h := j.Whole
			share := p.bump(h)
			want := min(max(int(math.Ceil(p.o.alpha*share*float64(n)-1e-9)), 1), n)
			slices.SortFunc(s, func(a, b int) int { return p.before(h, a, b) })
			rest = slices.Clone(s[want:])
			s, k, key = s[:want], want, h
		}
	}
	p.total++
	return append(slices.Clone(s), rest...), k, key, depth, hotDepth
}

func (p *proto) before(h uint64, a, b int) int {
	switch {
	case a == b:
		return 0
	case p.index.Before(h, a, b):
		return -1
	}
	return 1
}

func (p *proto) Pick(now time.Duration, q *Query) Choice {
	order, k, key, _, hot := p.set(q.Job)
	mean := p.mean()
	bound := math.Ceil(max(1.25*mean, mean+min(10, 3*math.Sqrt(mean)+1)))
	best, pos := -1, 0
	if p.o.b1 > 0 {
		bound = math.Ceil(p.o.b1*mean + p.o.b2)
	}
	if p.o.nobound {
		bound = math.Inf(1)
	}
	if !p.o.cost {
		// among the own homes the least loaded; then in order
		for i, x := range order {
			l := p.load[p.members[x].Replica]
			if i < k {
				if float64(l) < bound && (best < 0 || l < p.load[p.members[best].Replica]) {
					best, pos = x, i
				}
				continue
			}
			if best >= 0 {
				break
			}
			if float64(l) < bound {
				best, pos = x, i
			}
		}
		if best < 0 {
			best = order[0]
		}
	} else {
		best, pos = p.cheapest(now, q.Job, order, k, bound, mean, hot)
	}
	r := p.members[best].Replica
	if p.o.table || p.o.cost {
		m := p.seen.match(r, q.Job.Chunks)
		u := float64(q.Job.Tokens - m*ChunkTokens)
		p.own[q.Job] = u
		p.pending[r] += u
		p.until[r] = max(now, p.until[r]) + time.Duration(u/p.o.rate*1e9)
		p.seen.touch(r, q.Job.Chunks)
	}
	c := p.take(r)
	if k == 1 {
		c.Key, c.Keyed, c.Home = key, true, p.members[order[0]].Replica
		c.Overflow = pos >= k
	}
	return c
}

func (p *proto) cheapest(now time.Duration, j *Job, order []int, k int, bound, mean float64, hot int) (best, pos int) {
	best = -1
	lowest := math.Inf(1)
	anyRoom := false
	for _, x := range order {
		if float64(p.load[p.members[x].Replica]) < bound {
			anyRoom = true
		}
	}
	length := float64(j.Tokens)
	for i, x := range order {
		r := p.members[x].Replica
		l := float64(p.load[r])
		if anyRoom && l >= bound {
			continue
		}
		m := 0
		if p.o.table {
			m = p.seen.match(r, j.Chunks) * ChunkTokens
		}
		if p.o.hot && hot*ChunkTokens > m && i < k {
			m = hot * ChunkTokens
		}
		u := max(length-float64(m), 1)
		wait := p.pending[r] / p.o.rate
		if p.o.leaky {
			wait = max(p.until[r]-now, 0).Seconds()
		}
		c := wait + (1+p.o.rho)*u/p.o.rate + p.o.eps
		c *= (l + p.o.a) / (mean + p.o.a)
		if i >= k && float64(m) < 0.25*length {
			c += p.o.spill*min(float64(i-k+1), 2)*length/p.o.rate + 0.001*float64(i-k+1) + p.o.leave
		}
		if c < lowest {
			best, lowest, pos = x, c, i
		}
	}
	return best, pos
}

func (p *proto) First(_ time.Duration, replica int, j *Job, _ time.Duration) {
	p.pending[replica] -= p.own[j]
	delete(p.own, j)
}

func (p *proto) Done(now time.Duration, replica int, j *Job) {
	p.First(now, replica, j, 0)
	p.fleetView.Done(now, replica, j)
}
