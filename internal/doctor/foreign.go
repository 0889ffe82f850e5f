package doctor

import (
	"math"
	"slices"

	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// eachForeign calls for every ext_proc filter that is not warmpath's, on every route on
// which both run.
func (g *gateway) eachForeign(do func(*route, *processor)) {
	for _, r := range g.asked() {
		for _, p := range r.m.foreign {
			do(r, p)
		}
	}
}

// through tells whether bodies of the route's requests pass through an ext_proc filter, or
// may when its server asks for them, and where that is said.
func (r *route) through(p *processor) (path, bool) {
	set := r.setting(p.httpFilter)
	if set.off {
		return nil, false
	}
	const none = extprocv3.ProcessingMode_NONE
	mode := modeOf(p, overrides(set))
	if mode.GetRequestBodyMode() != none {
		return mode.at.with("request_body_mode"), true
	}
	asks := len(p.GetAllowedOverrideModes()) == 0 ||
		slices.ContainsFunc(p.GetAllowedOverrideModes(), func(m *extprocv3.ProcessingMode) bool { return m.GetRequestBodyMode() != none })
	return p.configAt.with("allow_mode_override"), p.GetAllowModeOverride() && asks && !mode.silent()
}

// buffered is how much of a body a filter takes that holds bodies back and refuses larger
// ones: [math.MaxUint64] for any other.
func (r *route) buffered(f httpFilter) (limit uint64, at path) {
	switch f.message.(type) {
	case *bufferv3.Buffer, *authzv3.ExtAuthz:
	default:
		return math.MaxUint64, nil
	}
	set := r.setting(f)
	if set.off {
		return math.MaxUint64, nil
	}
	nearest := set.nearest(level{f.message, f.configAt})
	switch b := f.message.(type) {
	case *bufferv3.Buffer:
		if own, ok := nearest.Message.(*bufferv3.BufferPerRoute); ok && own.GetBuffer() != nil {
			return uint64(own.GetBuffer().GetMaxRequestBytes().GetValue()), nearest.at.with("buffer")
		}
		return uint64(b.GetMaxRequestBytes().GetValue()), f.configAt
	case *authzv3.ExtAuthz:
		with, at := b.GetWithRequestBody(), f.configAt.with("with_request_body")
		if own, ok := nearest.Message.(*authzv3.ExtAuthzPerRoute); ok {
			settings := own.GetCheckSettings()
			if settings.GetDisableRequestBodyBuffering() {
				return math.MaxUint64, nil
			}
			if settings.GetWithRequestBody() != nil {
				with, at = settings.GetWithRequestBody(), nearest.at.with("check_settings", "with_request_body")
			}
		}
		if with != nil && !with.GetAllowPartialMessage() {
			return uint64(with.GetMaxRequestBytes()), at
		}
	}
	return math.MaxUint64, nil
}
