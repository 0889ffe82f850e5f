package route

import (
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// growthTime is how long a set stays as large as it had to be, in ns.
const growthTime = 300e9

// growth is by how much adapters' sets are larger than the rules say. It outlives
// the tables.
type growth struct {
	mu sync.Mutex
	// sets are those of real adapters, guessed those of names that a client may have
	// made up.
	sets, guessed *lru.Cache[string, grownSet]
}

// grownSet is one set's: by how many endpoints, and since when it needed no more.
type grownSet struct {
	by int
	at int64
}

func newGrowth() *growth {
	sets, _ := lru.New[string, grownSet](maxAdapters) // it fails for a size below 1 only
	guessed, _ := lru.New[string, grownSet](maxAdapters)
	return &growth{sets: sets, guessed: guessed}
}

func (g *growth) of(isReal bool) *lru.Cache[string, grownSet] {
	if isReal {
		return g.sets
	}
	return g.guessed
}

// by returns by how much a set is larger now. One that was large enough for a while
// becomes smaller, step by step.
func (g *growth) by(name string, isReal bool, now int64) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	sets := g.of(isReal)
	set, ok := sets.Get(name)
	if !ok {
		return 0
	}
	if steps := (now - set.at) / growthTime; steps > 0 {
		if set.by -= int(steps); set.by <= 0 {
			sets.Remove(name)
			return 0
		}
		set.at = now
		sets.Add(name, set)
	}
	return set.by
}

// to says that a set needs to be larger by so many now.
func (g *growth) to(name string, isReal bool, by int, now int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(isReal).Add(strings.Clone(name), grownSet{by, now})
}
