// Package route chooses the endpoint of a request and reserves its slot there,
// in one step, and says why: the [Decision] is a value from which spans,
// metrics, logs and explanations are printed.
//
// It is pure: it reads one immutable [Table] a request, writes nothing but the
// endpoints' atomic counters, and takes its randomness from outside.
package route

import (
	"fmt"
	"strings"

	"github.com/warmpath/warmpath/internal/affinity"
)

// Strategy is how an endpoint is chosen, by the names that Amazon SageMaker's
// RoutingConfig uses.
type Strategy uint8

// The strategies. Random is the default, as in SageMaker.
const (
	Random Strategy = iota
	LeastOutstandingRequests
	PrefixAware
	KVAware
)

var strategyNames = [...]string{
	Random:                   "RANDOM",
	LeastOutstandingRequests: "LEAST_OUTSTANDING_REQUESTS",
	PrefixAware:              "PREFIX_AWARE",
	KVAware:                  "KV_AWARE",
}

// String returns the name that configuration, spans and metrics use.
func (s Strategy) String() string {
	if int(s) < len(strategyNames) {
		return strategyNames[s]
	}
	return fmt.Sprintf("Strategy(%d)", uint8(s))
}

// Strategies returns all strategies in order, for those who prepare something
// for each.
func Strategies() []Strategy {
	all := make([]Strategy, len(strategyNames))
	for i := range all {
		all[i] = Strategy(i)
	}
	return all
}

// ParseStrategy reads a strategy by its name.
func ParseStrategy(name string) (Strategy, error) {
	for i, n := range strategyNames {
		if n == name {
			return Strategy(i), nil
		}
	}
	return 0, fmt.Errorf("strategy %q: want one of %s", name, strings.Join(strategyNames[:], ", "))
}

// Bounds of SageMaker's PrefixAwareRoutingConfig, and the default prefix length.
const (
	MinPrefixLength = 1024
	MaxPrefixLength = 65536
	// AutoPrefixLength finds the length for each prefix by itself. No fixed one fits
	// all traffic (docs/RATIONALE.md), so it is the default.
	AutoPrefixLength    = -1
	DefaultPrefixLength = AutoPrefixLength

	// LevelChars is the distance of two levels of a key, as in package prefix.
	LevelChars = 256

	MinConcurrencyThreshold = 1
	MaxConcurrencyThreshold = 1024
	// AutoConcurrencyThreshold lets the bound follow the mean load: see autoBound.
	AutoConcurrencyThreshold = 0
)

// Policy is how the requests of a pool are routed. The zero Policy routes at
// random.
type Policy struct {
	Strategy Strategy
	// PrefixLength is how much of a request's beginning makes its key, in
	// characters of message text (bytes on native invoke paths), or
	// AutoPrefixLength. Used by PrefixAware only.
	PrefixLength int
	// ConcurrencyThreshold is how many requests may be outstanding at an
	// endpoint before its keys overflow, or AutoConcurrencyThreshold. Used by
	// PrefixAware and KVAware.
	ConcurrencyThreshold int
}

// NeedsKey reports whether the policy looks at a request's beginning.
func (p Policy) NeedsKey() bool { return p.Strategy == PrefixAware || p.Strategy == KVAware }

// ReadLength is how many characters of a prompt the policy looks at, at most.
func (p Policy) ReadLength() int {
	if p.PrefixLength == AutoPrefixLength || p.Strategy == KVAware {
		return affinity.MaxLevels * LevelChars
	}
	return p.PrefixLength
}

// partThreshold is the threshold by which a part of a table is full: strategies
// without one have the automatic one there.
func (p Policy) partThreshold() int {
	if p.NeedsKey() {
		return p.ConcurrencyThreshold
	}
	return AutoConcurrencyThreshold
}
