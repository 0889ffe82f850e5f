package extproc

import "github.com/warmpath/warmpath/internal/prefix"

// findPool finds the pool as far as it can be told without the body.
func (s *stream) findPool(pathModel string) {
	pools := s.pools
	if pool := pools.Named(s.said.Pool); pool != nil {
		s.use(pool, false)
		return
	}
	s.record.Unknown = pools.unknown(s.said.Pool, s.head.component, pathModel)
	pool, settled := pools.early(s.head.component, pathModel)
	if s.head.full { // Envoy could not be told of another
		pool, settled = pools.fallback, true
	}
	s.use(pool, true)
	s.byModel = !settled
}

// use settles the pool, and with it the policy.
func (s *stream) use(pool *Pool, reroute bool) {
	s.pool, s.record.Pool = pool, pool.Name
	s.rerouted = reroute && pool != s.pools.fallback
	if s.policy, s.record.PolicyOrigin = s.said.Policy, s.said.Origin; s.said.Origin == "" {
		s.policy = pool.Router.Table().Policy()
	}
	s.tryPool()
}

// changePool takes the pool of the model in the body, and reports whether the body
// has to be read again for it.
func (s *stream) changePool(r *prefix.Result) (again bool) {
	if !s.byModel {
		return false
	}
	s.byModel = false
	pool := s.pools.byModel(r.Model)
	s.record.Unknown.Model = pool == nil && r.Model != ""
	if pool == nil || pool == s.pool {
		return false
	}
	read := s.readLength()
	s.use(pool, true)
	return (s.policy.NeedsKey() || s.splits() != nil) && s.readLength() != read
}
