package doctor

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// processorConfig is what holds for warmpath's filter on a route, with the places where
// that stands.
type processorConfig struct {
	p            *processor
	r            *route
	service      *corev3.GrpcService
	serviceAt    path
	namespaces   []string // that warmpath may write to
	namespacesAt path
	failureAllow bool
	failureAt    path
	failureNear  bool // not the filter's own
}

// config is the filter's own.
func (p *processor) config() processorConfig {
	return processorConfig{
		p: p, service: p.GetGrpcService(), serviceAt: p.configAt.with("grpc_service"),
		namespaces:   p.GetMetadataOptions().GetReceivingNamespaces().GetUntyped(),
		namespacesAt: p.configAt.with("metadata_options", "receiving_namespaces", "untyped"),
		failureAllow: p.GetFailureModeAllow(), failureAt: p.configAt.with("failure_mode_allow"),
	}
}

// processorConfig is that of warmpath's filter on the route.
func (r *route) processorConfig() processorConfig {
	c := r.m.processor.configWith(r.own)
	c.r = r
	return c
}

// configWith merges the filter's own with what the levels have, as Envoy does: field by
// field, and the nearest wins.
func (p *processor) configWith(own []override) processorConfig {
	c := p.config()
	for i := len(own) - 1; i >= 0; i-- {
		l := own[i]
		if s := l.GetGrpcService(); s != nil {
			c.service, c.serviceAt = s, l.at.with("grpc_service")
		}
		if n := l.GetMetadataOptions().GetReceivingNamespaces(); n != nil {
			c.namespaces, c.namespacesAt = n.GetUntyped(), l.at.with("metadata_options", "receiving_namespaces", "untyped")
		}
		if allow := l.GetFailureModeAllow(); allow != nil {
			c.failureAllow, c.failureAt, c.failureNear = allow.GetValue(), l.at.with("failure_mode_allow"), true
		}
	}
	return c
}

// processorConfigs are those of all judged routes. What is reported of several at one
// place is shown once.
func (g *gateway) processorConfigs() (configs []processorConfig) {
	for _, r := range g.asked() {
		configs = append(configs, r.processorConfig())
	}
	return configs
}

// cluster is the name of that in which warmpath is asked, "" without one.
func (c processorConfig) cluster() string { return c.service.GetEnvoyGrpc().GetClusterName() }
