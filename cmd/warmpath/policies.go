package main

import (
	"context"
	"sync"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/envoypolicy"
	"github.com/warmpath/warmpath/internal/route"
)

// policies finds the policy that Envoy's configuration has for a request, and
// tells of those that cannot be used.
type policies struct {
	resolver *envoypolicy.Resolver
	p        *program

	mu   sync.Mutex
	told map[string]bool // faults that were logged
}

// maxTold bounds the faults that are logged, each once for a configuration; all
// are counted.
const maxTold = 100

func (p *program) newPolicies(c config.Config) (*policies, error) {
	named := make(map[string]route.Policy, len(c.Policies))
	for _, n := range c.Policies {
		named[n.Name] = policy(n.RoutingConfig)
	}
	pools := make(map[string]route.Policy, len(c.Pools))
	for _, n := range c.Pools {
		pools[n.Name] = policy(n.RoutingConfig)
	}
	resolver, err := envoypolicy.NewResolver(named, pools, policy(c.RoutingConfig))
	if err != nil {
		return nil, err
	}
	for _, origin := range envoypolicy.Origins() {
		for _, problem := range envoypolicy.Problems() {
			if origin != envoypolicy.FromDefault { // that has none
				p.metrics.PolicyFaults.WithLabelValues(origin.String(), problem.String()) // or the first one would not be an increase
			}
		}
	}
	return &policies{resolver: resolver, p: p, told: make(map[string]bool)}, nil
}

// Policy implements extproc.PolicySource.
func (s *policies) Policy(ctx context.Context, first *extprocv3.ProcessingRequest) extproc.ChosenPolicy {
	found := s.resolver.Resolve(envoypolicy.NewInput(ctx, first))
	for _, fault := range found.Faults {
		s.p.metrics.PolicyFaults.WithLabelValues(fault.Origin.String(), fault.Problem.String()).Inc()
		s.tell(fault.Error())
	}
	if found.Origin == envoypolicy.FromDefault {
		return extproc.ChosenPolicy{}
	}
	return extproc.ChosenPolicy{Policy: found.Policy, Origin: found.Origin.String(), Pool: found.Pool}
}

func (s *policies) tell(fault string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told[fault] || len(s.told) == maxTold {
		return
	}
	s.told[fault] = true
	s.p.log.Warn("a policy in Envoy's configuration cannot be used", "error", fault)
}
