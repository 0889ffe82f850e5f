package doctor

import (
	"slices"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// mode is what a part of the traffic is processed with.
type mode struct {
	*extprocv3.ProcessingMode
	at path
	p  *processor
}

// mode is that of warmpath's filter on the route.
func (r *route) mode() mode { return modeOf(r.m.processor, r.own) }

// modeOf is that of an ext_proc filter.
func modeOf(p *processor, own []override) mode {
	for _, l := range own {
		if m := l.GetProcessingMode(); m != nil {
			return mode{m, l.at.with("processing_mode"), p}
		}
	}
	return mode{p.GetProcessingMode(), p.configAt.with("processing_mode"), p}
}

// silent tells whether nothing of a request goes to warmpath: then it is not asked.
func (m mode) silent() bool {
	const skip, none = extprocv3.ProcessingMode_SKIP, extprocv3.ProcessingMode_NONE
	return m.GetRequestHeaderMode() == skip && m.GetResponseHeaderMode() == skip && m.GetRequestBodyMode() == none && m.GetResponseBodyMode() == none
}

// modes are those of all judged routes, each once.
func (g *gateway) modes() (modes []mode) {
	there := make(map[string]bool)
	for _, r := range g.asked() {
		m := r.mode()
		if at := m.at.String(); !there[at] {
			there[at] = true
			modes = append(modes, m)
		}
	}
	return modes
}

// buffers tells whether whole bodies go to warmpath, or may when it asks.
func (m mode) buffers() bool {
	switch m.GetRequestBodyMode() {
	case extprocv3.ProcessingMode_BUFFERED:
		return true
	case extprocv3.ProcessingMode_NONE:
		return m.p.mayAsk(extprocv3.ProcessingMode_BUFFERED, extprocv3.ProcessingMode_NONE)
	default:
		return false
	}
}

// mayAsk tells whether warmpath may change the modes of a request's and a response's
// body. Envoy compares all modes but that of the request's headers.
func (p *processor) mayAsk(request, response extprocv3.ProcessingMode_BodySendMode) bool {
	return p.GetAllowModeOverride() && (len(p.GetAllowedOverrideModes()) == 0 ||
		slices.ContainsFunc(p.GetAllowedOverrideModes(), func(m *extprocv3.ProcessingMode) bool {
			return m.GetRequestBodyMode() == request && m.GetResponseBodyMode() == response &&
				m.GetResponseHeaderMode() == extprocv3.ProcessingMode_SEND && m.GetResponseTrailerMode() == extprocv3.ProcessingMode_SEND &&
				m.GetRequestTrailerMode() == extprocv3.ProcessingMode_DEFAULT
		}))
}
