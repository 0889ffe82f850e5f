package extproc

import (
	"cmp"
	"fmt"

	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// PoolHeader names the cluster of a request's pool to Envoy, whose routes may take
// the cluster from it (cluster_header). It is set where the pool was not chosen by
// Envoy's own configuration, and it is never a client's.
const PoolHeader = "x-warmpath-pool"

// Pool is a set of endpoints that serve the same models: a cluster of Envoy's.
type Pool struct {
	// Name is what configuration, spans and metrics call it; it is empty for the
	// default pool, which takes what belongs to no other.
	Name string
	// Cluster is its name in Envoy.
	Cluster string
	Router  *route.Router
	// Trials are what is on trial in the pool; nil for nothing.
	Trials *trial.Trials
	// Models are the names in a request's body or path that belong to the pool; one
	// may end in *, for all that begin like it. Of several the longest counts.
	Models []string
	// Components are the values of the component header that belong to the pool. Its
	// name is one of them.
	Components []string
}

// Pools are all the pools there are. They never change.
type Pools struct {
	fallback   *Pool
	named      map[string]*Pool
	models     route.ModelRules[*Pool]
	components map[string]*Pool
}

// Bounds of the models of all pools.
const (
	MaxModels     = 100_000
	MaxModelBytes = 256 // of a name
)

// NewPools returns the default pool and the others as one. An error names what two
// of them claim, or what is beyond [MaxModels] and [MaxModelBytes].
func NewPools(fallback *Pool, others ...*Pool) (*Pools, error) {
	p := &Pools{fallback: fallback, named: map[string]*Pool{}, components: map[string]*Pool{}}
	clusters := map[string]*Pool{fallback.Cluster: fallback}
	for _, pool := range others {
		if pool.Name == "" || p.named[pool.Name] != nil {
			return nil, fmt.Errorf("pool %q: want a name of its own", pool.Name)
		}
		if other := clusters[pool.Cluster]; other != nil {
			return nil, fmt.Errorf("pools %q and %q: both are cluster %q", other.Name, pool.Name, pool.Cluster)
		}
		p.named[pool.Name], clusters[pool.Cluster] = pool, pool
	}
	for _, pool := range append([]*Pool{fallback}, others...) {
		if err := p.claim(pool); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// claim notes what belongs to a pool.
func (p *Pools) claim(pool *Pool) error {
	for _, model := range pool.Models {
		switch other, taken := p.models.Add(model, pool); {
		case taken:
			return fmt.Errorf("pools %q and %q: both have model %q", other.Name, pool.Name, model)
		case len(model) > MaxModelBytes:
			return fmt.Errorf("pool %q: model %.40q... has %d bytes, want at most %d", pool.Name, model, len(model), MaxModelBytes)
		case p.models.Len() > MaxModels:
			return fmt.Errorf("pool %q: model %q is one too many, want at most %d in all pools", pool.Name, model, MaxModels)
		}
	}
	components := pool.Components
	if pool.Name != "" {
		components = append([]string{pool.Name}, components...)
	}
	for _, component := range components {
		if other := p.components[component]; other != nil && other != pool {
			return fmt.Errorf("pools %q and %q: both have component %q", other.Name, pool.Name, component)
		}
		p.components[component] = pool
	}
	return nil
}

// Named returns a pool by its name, nil if there is none. The default pool has none.
func (p *Pools) Named(name string) *Pool { return p.named[name] }

// Of returns the pool of a request by what the request itself says: see
// [Settings].ComponentHeader, and the models in its path and its body. It is for
// explanations.
func (p *Pools) Of(component, pathModel, bodyModel string) *Pool {
	pool, settled := p.early(component, pathModel)
	if settled {
		return pool
	}
	return cmp.Or(p.byModel(bodyModel), pool)
}

// early returns the pool of a request as far as its headers tell; unless that is
// settled its body may tell another.
func (p *Pools) early(component, pathModel string) (pool *Pool, settled bool) {
	if pool := p.components[component]; pool != nil {
		return pool, true
	}
	if pathModel != "" {
		return cmp.Or(p.byModel(pathModel), p.fallback), true
	}
	return p.fallback, p.models.Len() == 0
}

// unknown says which of the words at a request's headers are no pool's. A word that is
// not asked for, because one before it has told, is not unknown.
func (p *Pools) unknown(name, component, pathModel string) (u Unknown) {
	if len(p.named) == 0 {
		return u
	}
	u.Pool = name != "" && p.named[name] == nil
	known := p.components[component] != nil
	u.Component = component != "" && !known
	u.Model = pathModel != "" && !known && p.models.Len() > 0 && p.byModel(pathModel) == nil
	return u
}

// byModel returns the pool of a model, nil if it belongs to none.
func (p *Pools) byModel(model string) *Pool {
	if model == "" {
		return nil
	}
	pool, _ := p.models.Find(model)
	return pool
}
