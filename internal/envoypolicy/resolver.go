// Package envoypolicy reads routing policies out of Envoy's own configuration,
// so that a route or a cluster can be routed differently from the rest without
// a word in warmpath's. What an ext_proc stream carries is the source of truth:
//
//  1. the gRPC initial metadata [Key], which the filter's grpc_service or a
//     route's ExtProcPerRoute.overrides.grpc_initial_metadata sets: the name of a
//     policy of warmpath's configuration, or a policy as JSON;
//  2. the cluster's filter_metadata, namespace [Namespace];
//  3. the route's filter_metadata, namespace [Namespace].
//
// The first source that says something valid decides; what it leaves open is as
// in the default policy. A source with any fault counts as silent: its [Fault]
// is reported, the next one is asked, and no request ever fails of it.
package envoypolicy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/warmpath/warmpath/internal/route"
)

// Origin says where a policy came from.
type Origin uint8

// The origins; of those but the default, the first has precedence.
const (
	FromDefault Origin = iota
	FromInitialMetadata
	FromClusterMetadata
	FromRouteMetadata
)

var originNames = [...]string{
	FromDefault:         "default",
	FromInitialMetadata: "initial_metadata",
	FromClusterMetadata: "cluster_metadata",
	FromRouteMetadata:   "route_metadata",
}

// Origins returns all origins in order, for those who count them.
func Origins() []Origin {
	return []Origin{FromDefault, FromInitialMetadata, FromClusterMetadata, FromRouteMetadata}
}

// String returns the name that spans and metrics use.
func (o Origin) String() string {
	if int(o) < len(originNames) {
		return originNames[o]
	}
	return fmt.Sprintf("origin(%d)", uint8(o))
}

// Bounds of what is looked at.
const (
	// MaxInitialMetadata is the longest initial metadata that is read, in bytes.
	MaxInitialMetadata = 4 << 10
	// MaxText is the longest text form of a metadata that is read, in bytes. It is
	// larger because other programs' namespaces stand in the same text.
	MaxText = 64 << 10
	// maxCachedText is the longest text whose outcome is kept: longer ones are
	// read each time, so that a full cache stays within some MiB.
	maxCachedText = 4 << 10
	// cacheEntries is the number of outcomes that are kept for each source.
	cacheEntries = 1024
	// maxName is the longest name of a policy, in bytes.
	maxName = 64
)

// Input is what an ext_proc stream carries of policies; empty fields say
// nothing. [NewInput] fills it.
type Input struct {
	// InitialMetadata is the value of the gRPC initial metadata [Key].
	InitialMetadata string
	// ClusterMetadata is the cluster's namespace [Namespace] as Envoy sends it
	// with cluster_metadata_forwarding_namespaces.
	ClusterMetadata *structpb.Struct
	// ClusterText is the attribute xds.cluster_metadata, the text form of an
	// envoy.config.core.v3.Metadata. It is read only without ClusterMetadata.
	ClusterText string
	// RouteText is the attribute xds.route_metadata, in the same form.
	RouteText string
}

// Resolution is the policy of a request and why it is the one.
type Resolution struct {
	Policy route.Policy
	Origin Origin
	// Pool is the pool that the deciding source names, empty if it names none.
	Pool string
	// Faults are those of the sources that were passed over, in their order. It
	// is shared and must not be changed.
	Faults []*Fault
}

// Resolver finds the policy of each request. It is immutable but for its caches,
// and safe for concurrent use: a changed configuration makes a new one.
type Resolver struct {
	named    map[string]route.Policy
	pools    map[string]route.Policy
	fallback route.Policy
	initial  *lru.Cache[string, outcome]
	cluster  *lru.Cache[string, outcome]
	route    *lru.Cache[string, outcome]
}

// outcome is what one source says.
type outcome struct {
	policy route.Policy
	pool   string
	given  bool     // policy and pool count
	faults []*Fault // at most one; not given then
}

// NewResolver returns a Resolver of the named policies, the policies of the named
// pools, and that of the default pool. What a source leaves open is as in its
// pool's policy. A policy without a prefix length has route.DefaultPrefixLength, so that a source
// may turn PREFIX_AWARE on. A name is 1 to 64 printable ASCII characters
// without spaces, and does not begin with a brace, which begins JSON.
func NewResolver(named, pools map[string]route.Policy, fallback route.Policy) (*Resolver, error) {
	r := &Resolver{named: maps.Clone(named), pools: maps.Clone(pools)}
	var err error
	if r.fallback, err = complete(fallback); err != nil {
		return nil, fmt.Errorf("default policy: %w", err)
	}
	for name, p := range named {
		if !validName(name) {
			return nil, fmt.Errorf("policy name %q: want 1..%d printable ASCII characters without spaces, not beginning with {", clip(name), maxName)
		}
		if r.named[name], err = complete(p); err != nil {
			return nil, fmt.Errorf("policy %q: %w", name, err)
		}
	}
	for name, p := range pools {
		if r.pools[name], err = complete(p); err != nil {
			return nil, fmt.Errorf("policy of pool %q: %w", name, err)
		}
	}
	for _, cache := range []**lru.Cache[string, outcome]{&r.initial, &r.cluster, &r.route} {
		if *cache, err = lru.New[string, outcome](cacheEntries); err != nil {
			return nil, fmt.Errorf("policy cache of %d entries: %w", cacheEntries, err)
		}
	}
	return r, nil
}

// complete checks a policy against route's bounds and gives it a prefix length.
func complete(p route.Policy) (route.Policy, error) {
	if p.PrefixLength == 0 {
		p.PrefixLength = route.DefaultPrefixLength
	}
	switch {
	case !isStrategy(p.Strategy):
		return p, fmt.Errorf("unknown strategy %s", p.Strategy)
	case p.PrefixLength != route.AutoPrefixLength && (p.PrefixLength < route.MinPrefixLength || p.PrefixLength > route.MaxPrefixLength):
		return p, fmt.Errorf("prefix length %d: %s", p.PrefixLength, wantPrefixLength)
	case p.ConcurrencyThreshold != route.AutoConcurrencyThreshold &&
		(p.ConcurrencyThreshold < route.MinConcurrencyThreshold || p.ConcurrencyThreshold > route.MaxConcurrencyThreshold):
		return p, fmt.Errorf("concurrency threshold %d: %s", p.ConcurrencyThreshold, wantThreshold)
	}
	return p, nil
}

func validName(name string) bool {
	return name != "" && len(name) <= maxName && name[0] != '{' &&
		!strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' })
}

// Resolve returns the policy of a request. It does not allocate when nothing is
// given, nor for texts that it has seen lately, unless several have faults.
func (r *Resolver) Resolve(in Input) Resolution {
	res := Resolution{Policy: r.fallback}
	if in.InitialMetadata != "" && res.take(FromInitialMetadata, r.ofInitialMetadata(in.InitialMetadata)) {
		return res
	}
	if res.take(FromClusterMetadata, r.ofCluster(in)) {
		return res
	}
	if in.RouteText != "" {
		res.take(FromRouteMetadata, r.ofText(r.route, FromRouteMetadata, in.RouteText))
	}
	return res
}

// take notes what a source says and reports whether that decides.
func (res *Resolution) take(origin Origin, o outcome) bool {
	if o.given {
		res.Policy, res.Origin, res.Pool = o.policy, origin, o.pool
		return true
	}
	if res.Faults == nil {
		res.Faults = o.faults // shared with the cache: the usual single fault costs nothing
	} else if len(o.faults) > 0 {
		res.Faults = slices.Concat(res.Faults, o.faults)
	}
	return false
}

func (r *Resolver) ofInitialMetadata(text string) outcome {
	if len(text) > MaxInitialMetadata {
		return failed(tooLong(FromInitialMetadata, len(text), MaxInitialMetadata))
	}
	return cached(r.initial, text, r.readInitialMetadata)
}

func (r *Resolver) ofCluster(in Input) outcome {
	switch {
	case len(in.ClusterMetadata.GetFields()) > 0:
		return r.ofStruct(FromClusterMetadata, in.ClusterMetadata)
	case in.ClusterText != "":
		return r.ofText(r.cluster, FromClusterMetadata, in.ClusterText)
	default:
		return outcome{}
	}
}

func (r *Resolver) ofText(cache *lru.Cache[string, outcome], origin Origin, text string) outcome {
	switch {
	case !strings.Contains(text, Namespace):
		return outcome{} // other programs' metadata: no reason to look closer, nor to keep it
	case len(text) > MaxText:
		return failed(tooLong(origin, len(text), MaxText))
	}
	return cached(cache, text, func(text string) outcome { return r.readText(origin, text) })
}

// cached returns what read makes of the text, remembered if it is not too long.
func cached(cache *lru.Cache[string, outcome], text string, read func(string) outcome) outcome {
	if len(text) > maxCachedText {
		return read(text)
	}
	if o, ok := cache.Get(text); ok {
		return o
	}
	o := read(text)
	cache.Add(strings.Clone(text), o) // a part of a message would keep all of it
	return o
}

func failed(f *Fault) outcome { return outcome{faults: []*Fault{f}} }
