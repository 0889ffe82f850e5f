package doctor

import (
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// modeRules are about what Envoy sends to warmpath.
func modeRules() []Rule {
	const modes, counted = "RATIONALE.md, What does each body mode give?", "RATIONALE.md, How are outstanding requests counted?"
	return []Rule{
		{
			ID: "no-request-headers", Severity: Error, What: "request_header_mode: SKIP",
			Why: "the request goes on before warmpath has been asked: nothing is steered", Source: "DOCTOR.md, What was measured",
			Fix: "request_header_mode: SEND", check: noRequestHeaders,
		},
		{
			ID: "body-streamed", Severity: Error, What: "request_body_mode: STREAMED",
			Why:    "the choice comes too late and is ignored; and with a retry parts of a body are sent twice",
			Source: modes, Fix: "request_body_mode: NONE, and BUFFERED among the allowed_override_modes", check: bodyStreamed,
		},
		{
			ID: "body-partial", Severity: Error, What: "request_body_mode: BUFFERED_PARTIAL",
			Why:    "a body above the buffer may hang: 10 of 24 of 5 MB did; and with a retry parts of a body are sent twice",
			Source: "RATIONALE.md, Why is the configured body mode NONE, and why does warmpath ask for BUFFERED?",
			Fix:    "request_body_mode: NONE, and BUFFERED among the allowed_override_modes", check: bodyPartial,
		},
		{
			ID: "body-full-duplex", Severity: Warning, What: "request_body_mode: FULL_DUPLEX_STREAMED",
			Why: "while warmpath is away every request with a body gets 500, whatever failure_mode_allow says; nothing is retried", Source: modes,
			Fix: "request_body_mode: NONE, and BUFFERED among the allowed_override_modes", check: bodyFullDuplex,
		},
		{
			ID: "body-buffered", Severity: Warning, What: "request_body_mode: BUFFERED without NONE among what warmpath may ask for",
			Why:    "every body above the buffer is refused with 413, and an upgrade that comes with a body hangs",
			Source: "RATIONALE.md, Why is the configured body mode NONE, and why does warmpath ask for BUFFERED?",
			Fix:    "request_body_mode: NONE and BUFFERED among the allowed_override_modes, or the other way round", check: bodyBuffered,
		},
		{
			ID: "body-never", Severity: Warning, What: "warmpath gets no bodies and may not ask for them",
			Why: "prompts are not read: requests are routed by their headers and by load (`body_not_sent`)", Source: modes,
			Fix: "allow_mode_override: true, and {request_body_mode: BUFFERED, response_header_mode: SEND, response_trailer_mode: SEND} among the allowed_override_modes", check: bodyNever,
		},
		{
			ID: "no-response-headers", Severity: Warning, What: "response_header_mode: SKIP",
			Why: "warmpath does not see which endpoint served, nor failures", Source: "RATIONALE.md, Why a list of up to three, and not one replica?",
			Fix: "response_header_mode: SEND", check: noResponseHeaders,
		},
		{
			ID: "no-trailers", Severity: Error, What: "response_trailer_mode is not SEND",
			Why: "the ext_proc stream ends with the response's headers, and so does the count: no bound holds", Source: counted,
			Fix: "response_trailer_mode: SEND", check: noTrailers,
		},
		{
			ID: "response-body", Severity: Warning, What: "response_body_mode is not NONE",
			Why: "a message for each token, each of which waits for warmpath; BUFFERED holds streamed answers back to their end", Source: counted,
			Fix: "response_body_mode: NONE; warmpath asks for the share that inspection.share names", check: responseBody,
		},
		{
			ID: "no-inspection", Severity: Note, What: "warmpath may not ask for parts of responses",
			Why: "hit rates are not measured: what it inspects is `not_sent`", Source: "CONFIG.md, inspection",
			Fix: "{request_body_mode: NONE, response_header_mode: SEND, response_body_mode: STREAMED, response_trailer_mode: SEND} among the allowed_override_modes, or inspection: {share: 0}", check: noInspection,
		},
	}
}

func eachMode(g *gateway, report report, field string, bad func(mode) bool, value func(mode) string) {
	for _, m := range g.modes() {
		if bad(m) {
			report(m.at.with(field), "%s is %s", field, value(m))
		}
	}
}

func noRequestHeaders(g *gateway, report report) {
	eachMode(g, report, "request_header_mode", func(m mode) bool { return m.GetRequestHeaderMode() == extprocv3.ProcessingMode_SKIP },
		func(mode) string { return "SKIP" })
}

func noResponseHeaders(g *gateway, report report) {
	eachMode(g, report, "response_header_mode", func(m mode) bool { return m.GetResponseHeaderMode() == extprocv3.ProcessingMode_SKIP },
		func(mode) string { return "SKIP" })
}

func noTrailers(g *gateway, report report) {
	eachMode(g, report, "response_trailer_mode", func(m mode) bool { return m.GetResponseTrailerMode() != extprocv3.ProcessingMode_SEND },
		func(m mode) string {
			if m.GetResponseTrailerMode() == extprocv3.ProcessingMode_DEFAULT {
				return "unset, which is SKIP"
			}
			return "SKIP"
		})
}

func responseBody(g *gateway, report report) {
	eachMode(g, report, "response_body_mode", func(m mode) bool { return m.GetResponseBodyMode() != extprocv3.ProcessingMode_NONE },
		func(m mode) string { return m.GetResponseBodyMode().String() })
}

func bodyIs(wanted extprocv3.ProcessingMode_BodySendMode) func(*gateway, report) {
	return func(g *gateway, report report) {
		eachMode(g, report, "request_body_mode", func(m mode) bool { return m.GetRequestBodyMode() == wanted },
			func(m mode) string { return m.GetRequestBodyMode().String() })
	}
}

func bodyStreamed(g *gateway, report report) { bodyIs(extprocv3.ProcessingMode_STREAMED)(g, report) }

func bodyPartial(g *gateway, report report) {
	bodyIs(extprocv3.ProcessingMode_BUFFERED_PARTIAL)(g, report)
}

func bodyFullDuplex(g *gateway, report report) {
	bodyIs(extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED)(g, report)
}

func bodyBuffered(g *gateway, report report) {
	eachMode(g, report, "request_body_mode", func(m mode) bool {
		return m.GetRequestBodyMode() == extprocv3.ProcessingMode_BUFFERED && !m.p.mayAsk(extprocv3.ProcessingMode_NONE, extprocv3.ProcessingMode_NONE)
	}, func(mode) string { return "BUFFERED, and warmpath may not ask for NONE" })
}

func bodyNever(g *gateway, report report) {
	for _, m := range g.modes() {
		if m.GetRequestBodyMode() == extprocv3.ProcessingMode_NONE && !m.buffers() {
			at := m.p.configAt.with("allowed_override_modes")
			if !m.p.GetAllowModeOverride() {
				at = m.p.configAt.with("allow_mode_override")
			}
			report(at, "request_body_mode is NONE, and warmpath may not ask for BUFFERED")
		}
	}
}

func noInspection(g *gateway, report report) {
	if !g.setup.Inspection {
		return
	}
	for _, m := range g.processors() {
		p := m.processor
		if p.GetAllowModeOverride() && !p.mayAsk(extprocv3.ProcessingMode_NONE, extprocv3.ProcessingMode_STREAMED) {
			report(p.configAt.with("allowed_override_modes"), "the line with response_body_mode: STREAMED is missing")
		}
	}
}
