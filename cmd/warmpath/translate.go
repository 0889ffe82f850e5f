package main

import (
	"log/slog"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// The configuration's words become the parts' own values here, so that the
// parts do not know the file.

func policy(c config.RoutingConfig) route.Policy {
	strategies := map[config.Strategy]route.Strategy{
		config.Random:                   route.Random,
		config.LeastOutstandingRequests: route.LeastOutstandingRequests,
		config.PrefixAware:              route.PrefixAware,
		config.KVAware:                  route.KVAware,
	}
	return route.Policy{
		Strategy:             strategies[c.RoutingStrategy],
		PrefixLength:         int(c.PrefixAware.PrefixLength),
		ConcurrencyThreshold: int(c.PrefixAware.ConcurrencyThreshold),
	}
}

func trialSettings(c config.Trial) trial.Settings {
	return trial.Settings{Share: c.Share, ShareLength: c.ShareLength, Policy: policy(c.RoutingConfig)}
}

func adapterRules(c config.Adapters) route.AdapterRules {
	return route.AdapterRules{Sticky: c.Sticky, Models: c.Models}
}

func (p *program) settings(c config.Config, generation int) (extproc.Settings, error) {
	policies, err := p.newPolicies(c)
	s := extproc.Settings{
		TenantHeader: c.Tenant.Header, ComponentHeader: c.Component.Header,
		BodyLimit:     c.Limits.RequestBodyBytes,
		InflateLimit:  c.Limits.InflateBytes,
		TotalBodies:   c.Limits.TotalBodyBytes,
		Streams:       c.Limits.Requests,
		RetryAttempts: c.Retry.Attempts,
		Generation:    generation,
		Policies:      policies,
		Inspect:       c.Inspection.Share,

		DecisionMetadata: c.Decision.Metadata, DecisionHeader: c.Decision.Header,
	}
	if p.recorder != nil {
		s.Recorder = p.recorder
	}
	for _, condition := range c.Retry.Conditions {
		s.RetryConditions = append(s.RetryConditions, string(condition))
	}
	return s, err
}

func logLevel(l config.LogLevel) slog.Level {
	return map[config.LogLevel]slog.Level{
		config.LogDebug: slog.LevelDebug,
		config.LogInfo:  slog.LevelInfo,
		config.LogWarn:  slog.LevelWarn,
		config.LogError: slog.LevelError,
	}[l]
}
