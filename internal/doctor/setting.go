package doctor

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// setting is how a filter is set on a route.
type setting struct {
	// off: it does nothing there, and offAt is where that stands.
	off   bool
	offAt path
	// levels are what the weighted cluster, the route, the virtual host and the route
	// configuration have for it, the nearest first.
	levels []level
}

// level is the settings of a filter at one place.
type level struct {
	proto.Message
	at path
}

// setting reads how a filter of any kind is set. Envoy asks the nearest level that names
// it whether it runs at all, even if nothing else stands there (an empty FilterConfig
// switches on); the filter then asks the nearest that has settings whether it is to do
// anything.
func (r *route) setting(f httpFilter) (s setting) {
	named := false
	for _, l := range []struct {
		at      path
		configs map[string]*anypb.Any
	}{
		{r.weightedAt, r.weighted.GetTypedPerFilterConfig()},
		{r.at, r.GetTypedPerFilterConfig()},
		{r.hostAt, r.host.GetTypedPerFilterConfig()},
		{r.m.routeConfigAt, r.m.routeConfig.GetTypedPerFilterConfig()},
	} {
		config := l.configs[f.name]
		if config == nil {
			continue
		}
		own := level{message(config), l.at.with("typed_per_filter_config", f.name)}
		if wrapped, ok := own.Message.(*routev3.FilterConfig); ok {
			if wrapped.GetDisabled() && !named {
				s.off, s.offAt = true, own.at.with("disabled")
			}
			own = level{message(wrapped.GetConfig()), own.at.with("config")}
		}
		if named = true; own.Message != nil {
			s.levels = append(s.levels, own)
		}
	}
	if f.disabled && !named {
		s.off, s.offAt = true, f.at.with("disabled")
	}
	if at, disabled := s.disabled(); disabled && !s.off {
		s.off, s.offAt = true, at
	}
	return s
}

// disabled tells whether the nearest settings say so themselves, as those of ext_proc, of
// Buffer, of ext_authz and of the compressor can.
func (s setting) disabled() (path, bool) {
	if len(s.levels) == 0 {
		return nil, false
	}
	m, ok := s.levels[0].Message.(interface{ GetDisabled() bool })
	return s.levels[0].at.with("disabled"), ok && m.GetDisabled()
}

// nearest are the settings that hold where a filter does not merge them: the filter's own
// if no level has any.
func (s setting) nearest(own level) level {
	if len(s.levels) > 0 {
		return s.levels[0]
	}
	return own
}

// override is what a level has for an ext_proc filter.
type override struct {
	*extprocv3.ExtProcOverrides
	at path
}

// overrides are those of an ext_proc filter. Envoy merges them field by field, and the
// nearest wins.
func overrides(s setting) (own []override) {
	for _, l := range s.levels {
		if m, ok := l.Message.(*extprocv3.ExtProcPerRoute); ok && m.GetOverrides() != nil {
			own = append(own, override{m.GetOverrides(), l.at.with("overrides")})
		}
	}
	return own
}

// findJudged finds the routes by which filters are judged: the steered ones, and for a
// manager none of whose is known one on which every filter is as it is configured.
func (g *gateway) findJudged() []*route {
	routes, known := slices.Clone(g.steered()), make(map[*manager]bool)
	for _, r := range routes {
		known[r.m] = true
	}
	for _, m := range g.looked() {
		if !known[m] {
			routes = append(routes, &route{m: m})
		}
	}
	return routes
}

// asked are the judged routes of the managers that have warmpath's filter.
func (g *gateway) asked() (routes []*route) {
	for _, r := range g.judged() {
		if r.m.processor != nil {
			routes = append(routes, r)
		}
	}
	return routes
}
