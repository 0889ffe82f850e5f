package config

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/internal/config/strict"

	"github.com/warmpath/warmpath/internal/route"
)

// maxConfigBytes bounds a configuration file; a static list of thousands of
// endpoints still fits.
const maxConfigBytes = 1 << 20

// Decode reads the text of a configuration file; name stands in messages. With
// any problem the Config must not be used.
func Decode(name string, data []byte) (Config, Problems) {
	var problems Problems
	c := Default()
	root := strict.Parse(name, data, maxConfigBytes, &problems)
	if root.OK() {
		c.decode(root)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line })
	return c, problems
}

func (c *Config) decode(root strict.Value) {
	hasMembership := false
	fields := append([]strict.Field{
		{Name: "listen", Decode: c.Listen.decode},
		{Name: "tls", Decode: c.TLS.decode},
	}, c.fields(&hasMembership)...)
	isMapping := root.Fields(append(fields,
		strict.Field{Name: "pools", Decode: c.decodePools},
		strict.Field{Name: "component", Decode: c.Component.decode},
		strict.Field{Name: "policies", Decode: c.decodePolicies},
		strict.Field{Name: "routers", Decode: strict.Int(&c.Routers, 1, MaxRouters)},
		strict.Field{Name: "gossip", Decode: c.Gossip.decode},
		strict.Field{Name: "zone", Decode: func(v strict.Value) { decodePlace(v, "a zone", &c.Zone) }},
		strict.Field{Name: "tenant", Decode: c.Tenant.decode},
		strict.Field{Name: "limits", Decode: c.Limits.decode},
		strict.Field{Name: "retry", Decode: c.Retry.decode},
		strict.Field{Name: "tracing", Decode: c.Tracing.decode},
		strict.Field{Name: "recording", Decode: c.Recording.decode},
		strict.Field{Name: "inspection", Decode: c.Inspection.decode},
		strict.Field{Name: "engineMetrics", Decode: c.EngineMetrics.decode},
		strict.Field{Name: "decision", Decode: c.Decision.decode},
		strict.Field{Name: "log", Decode: c.Log.decode},
	)...)
	if c.Limits.TotalBodyBytes < c.Limits.RequestBodyBytes {
		root.Report("limits.totalBodyBytes", "%d is below requestBodyBytes, %d", c.Limits.TotalBodyBytes, c.Limits.RequestBodyBytes)
	}
	c.Gossip.check(root, c.Listen)
	if isMapping && !hasMembership && len(c.Pools) == 0 {
		root.Report("membership", noSource)
	}
	c.finishPools(root, hasMembership)
	c.finishAPI(root)
}

func (r *RoutingConfig) decode(v strict.Value) { v.Fields(r.fields()...) }

func (r *RoutingConfig) fields() []strict.Field {
	return []strict.Field{
		{Name: "routingStrategy", Alias: "RoutingStrategy", Decode: func(v strict.Value) {
			strict.Enum(&r.RoutingStrategy, Random, LeastOutstandingRequests, PrefixAware, KVAware)(v)
		}},
		{Name: "prefixAwareRoutingConfig", Alias: "PrefixAwareRoutingConfig", Decode: r.PrefixAware.decode},
	}
}

func (p *PrefixAwareRoutingConfig) decode(v strict.Value) {
	v.Fields(
		strict.Field{Name: "prefixLength", Alias: "PrefixLength", Decode: p.PrefixLength.decode},
		strict.Field{Name: "concurrencyThreshold", Alias: "ConcurrencyThreshold", Decode: p.ConcurrencyThreshold.decode},
	)
}

func (l *Length) decode(v strict.Value) {
	decodeAuto(v, l, AutoLength, route.MinPrefixLength, route.MaxPrefixLength)
}

func (t *Threshold) decode(v strict.Value) {
	decodeAuto(v, t, AutoThreshold, route.MinConcurrencyThreshold, route.MaxConcurrencyThreshold)
}

// decodeAuto reads a whole number within bounds, or the word auto.
func decodeAuto[N ~int](v strict.Value, n *N, auto N, low, high int) {
	switch word, ok := v.Word(); {
	case ok && word == "auto":
		*n = auto
	case ok:
		v.Reject("is not a whole number (want auto or %d..%d)", low, high)
	default:
		strict.Int(n, int64(low), int64(high))(v)
	}
}

func (t *Tenant) decode(v strict.Value) {
	v.Fields(strict.Field{Name: "header", Decode: func(v strict.Value) { decodeHeader(v, &t.Header) }})
}

func (c *Component) decode(v strict.Value) {
	v.Fields(strict.Field{Name: "header", Decode: func(v strict.Value) { decodeHeader(v, &c.Header) }})
}

func (c *Cluster) decode(v strict.Value) {
	v.Fields(
		strict.Field{Name: "name", Decode: func(v strict.Value) { decodeClusterName(v, &c.Name) }},
		strict.Field{Name: "connectTimeout", Decode: strict.Duration(&c.ConnectTimeout, 10*time.Millisecond, time.Minute)},
		strict.Field{Name: "maxRequestsPerConnection", Decode: strict.Int(&c.MaxRequestsPerConnection, 0, 1_000_000)},
	)
}

func (l *Limits) decode(v strict.Value) {
	// The floor holds the longest prefix, in characters of one byte; the
	// ceilings keep a typing error from becoming an allocation.
	v.Fields(
		strict.Field{Name: "requestBodyBytes", Decode: strict.Int(&l.RequestBodyBytes, route.MaxPrefixLength, 256<<20)},
		strict.Field{Name: "totalBodyBytes", Decode: strict.Int(&l.TotalBodyBytes, 1<<20, 1<<40)},
		strict.Field{Name: "requests", Decode: strict.Int(&l.Requests, 1, 10_000_000)},
		strict.Field{Name: "inflateBytes", Decode: strict.Int(&l.InflateBytes, route.MaxPrefixLength, 1<<30)},
	)
}

func (t *Tracing) decode(v strict.Value) {
	v.Fields(
		strict.Field{Name: "otlpEndpoint", Decode: func(v strict.Value) { decodeCollector(v, &t.OTLPEndpoint) }},
		strict.Field{Name: "insecure", Decode: strict.Bool(&t.Insecure)},
		strict.Field{Name: "sampleRatio", Decode: strict.Float(&t.SampleRatio, 0, 1)},
	)
}

func (l *Log) decode(v strict.Value) {
	v.Fields(
		strict.Field{Name: "level", Decode: strict.Enum(&l.Level, LogDebug, LogInfo, LogWarn, LogError)},
		strict.Field{Name: "format", Decode: strict.Enum(&l.Format, LogText, LogJSON)},
	)
}
