package extproc

import (
	"fmt"
	"math"
	"strings"
	"time"

	extprocfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/internal/usage"
)

// Inspection is what was read of a sampled response. It has numbers only.
type Inspection struct {
	Result InspectionResult
	// PromptTokens and CachedTokens are what the engine counted, the latter of them in
	// its cache: both with InspectionRead, the first with InspectionNoCached.
	PromptTokens, CachedTokens int64
	// FirstToken is when the first piece of a streamed answer passed; zero if none did.
	FirstToken time.Time
}

// InspectionResult says in a word what became of an inspection.
type InspectionResult uint8

// The results.
const (
	// InspectionNotSent: Envoy sent no body, although it was asked to: it may not, or
	// the client left before there was any.
	InspectionNotSent InspectionResult = iota
	// InspectionRead: the tokens of the prompt and those in the cache were told.
	InspectionRead
	// InspectionNoCached: only the tokens of the prompt were told.
	InspectionNoCached
	// InspectionNoUsage: no tokens were told.
	InspectionNoUsage
	// InspectionTooLarge: the answer, or a line of it, is longer than what is read.
	InspectionTooLarge
	// InspectionMalformed: the answer is not what its content-type says.
	InspectionMalformed
	// InspectionCut: the answer ended before it told anything: the client left, or the
	// endpoint failed.
	InspectionCut
	// InspectionOverloaded: other inspections hold all the memory there is for them.
	InspectionOverloaded
)

var inspectionNames = [...]string{
	InspectionNotSent:    "not_sent",
	InspectionRead:       "read",
	InspectionNoCached:   "no_cached_tokens",
	InspectionNoUsage:    "no_usage",
	InspectionTooLarge:   "too_large",
	InspectionMalformed:  "malformed",
	InspectionCut:        "cut",
	InspectionOverloaded: "overloaded",
}

// InspectionResults returns all results in order, for those who count them.
func InspectionResults() []InspectionResult {
	all := make([]InspectionResult, len(inspectionNames))
	for i := range all {
		all[i] = InspectionResult(i)
	}
	return all
}

// String returns the name that metrics use.
func (r InspectionResult) String() string {
	if int(r) < len(inspectionNames) {
		return inspectionNames[r]
	}
	return fmt.Sprintf("inspection_result(%d)", uint8(r))
}

// inspectionBytes is how much of responses all inspections together may hold.
const inspectionBytes = 64 << 20

// inspecting is the state of a response that is inspected.
type inspecting struct {
	reader *usage.Reader
	// held is what it has of inspectionBytes.
	held int64
	// arrived: a part of the body has come. ended: all of it has.
	arrived, ended bool
	// overloaded: the memory did not suffice, and the rest is not read.
	overloaded bool
	firstToken time.Time
}

// inspectAll as a chance is certainty.
const inspectAll = math.MaxUint64

// chance is the part of all random numbers that stands for a share.
func chance(share float64) uint64 {
	switch {
	case share >= 1:
		return inspectAll
	case share > 0:
		return uint64(share * (1 << 63) * 2)
	default:
		return 0
	}
}

// inspect begins to inspect a response if it is sampled, and returns the answer to its
// headers. It is not if Envoy chose by itself while the request's body was still coming:
// its mode must not change then.
func (s *stream) inspect(m *extprocv3.HttpHeaders) *extprocv3.ProcessingResponse {
	share := s.settings.inspect
	if share == 0 || share != inspectAll && s.server.random() >= share {
		return passResponseHeaders
	}
	d := &s.record.Decision
	if s.observed || s.inspecting != nil || s.record.Status != 200 || s.record.Served == "" || m.GetEndOfStream() || d.Chosen == "" {
		return passResponseHeaders
	}
	format, ok := inspectable(m)
	if !ok || !generates(s.record.API) {
		return passResponseHeaders
	}
	s.inspecting = &inspecting{reader: usage.NewReader(format)}
	if s.back != modeNone || s.mode == modeStreamed || s.mode == modeDuplex {
		return passResponseHeaders // it comes by itself, or cannot be asked for
	}
	return streamResponseBody
}

// streamResponseBody asks for the body of the response. The body of the request has passed
// or does not come here: NONE leaves it at that.
var streamResponseBody = &extprocv3.ProcessingResponse{
	Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{}},
	ModeOverride: &extprocfilterv3.ProcessingMode{
		RequestBodyMode:     modeNone,
		ResponseHeaderMode:  extprocfilterv3.ProcessingMode_SEND,
		ResponseBodyMode:    modeStreamed,
		ResponseTrailerMode: extprocfilterv3.ProcessingMode_SEND,
	},
}

// inspectable returns the format of a response that can be read.
func inspectable(m *extprocv3.HttpHeaders) (format usage.Format, ok bool) {
	for _, h := range m.GetHeaders().GetHeaders() {
		switch h.GetKey() {
		case "content-encoding":
			if v := value(h); v != "" && !strings.EqualFold(v, "identity") {
				return 0, false
			}
		case "content-type":
			media, _, _ := strings.Cut(value(h), ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "application/json":
				format, ok = usage.JSON, true
			case "text/event-stream":
				format, ok = usage.Events, true
			default:
				return 0, false
			}
		}
	}
	return format, ok
}

// inspectBody reads a part of the response. Whatever it is, it passes.
func (s *stream) inspectBody(m *extprocv3.HttpBody) {
	i := s.inspecting
	if i == nil {
		return
	}
	defer s.uninspectable()
	i.arrived, i.ended = true, i.ended || m.GetEndOfStream()
	if i.overloaded {
		return
	}
	i.reader.Write(m.GetBody())
	if i.firstToken.IsZero() && i.reader.Content() {
		i.firstToken = time.Now()
	}
	if more := int64(i.reader.Held()) - i.held; !s.server.inspected.take(more, inspectionBytes) {
		s.server.inspected.give(i.held)
		i.overloaded, i.reader, i.held = true, new(usage.Reader), 0
	} else {
		i.held += more
	}
}

// inspectTrailers notes that the response is complete.
func (s *stream) inspectTrailers() {
	if s.inspecting != nil {
		s.inspecting.ended = true
	}
}

// endInspection puts what was read into the record.
func (s *stream) endInspection() {
	i := s.inspecting
	if i == nil {
		return
	}
	defer s.uninspectable()
	s.server.inspected.give(i.held)
	i.held = 0
	found := i.reader.Finish()
	s.record.Inspection = &Inspection{
		Result:       i.result(found.Outcome),
		PromptTokens: found.PromptTokens, CachedTokens: found.CachedTokens, FirstToken: i.firstToken,
	}
}

func (i *inspecting) result(o usage.Outcome) InspectionResult {
	switch {
	case !i.arrived:
		return InspectionNotSent
	case i.overloaded:
		return InspectionOverloaded
	case o == usage.Read:
		return InspectionRead
	case o == usage.NoCachedTokens:
		return InspectionNoCached
	case o == usage.TooLarge:
		return InspectionTooLarge
	case !i.ended:
		return InspectionCut
	case o == usage.Malformed:
		return InspectionMalformed
	default:
		return InspectionNoUsage
	}
}

// uninspectable keeps a defect in inspecting from the response, which passes as it is.
func (s *stream) uninspectable() {
	if recover() != nil {
		s.server.inspected.give(s.inspecting.held)
		s.inspecting = nil
		s.panicked()
	}
}
