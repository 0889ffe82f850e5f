package extproc

import (
	"runtime/debug"
	"strconv"
	"time"

	extprocfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/prefix"
	"github.com/warmpath/warmpath/internal/route"
)

type bodyMode = extprocfilterv3.ProcessingMode_BodySendMode

const (
	modeNone     = extprocfilterv3.ProcessingMode_NONE
	modeBuffered = extprocfilterv3.ProcessingMode_BUFFERED
	modePartial  = extprocfilterv3.ProcessingMode_BUFFERED_PARTIAL
	modeStreamed = extprocfilterv3.ProcessingMode_STREAMED
	modeDuplex   = extprocfilterv3.ProcessingMode_FULL_DUPLEX_STREAMED
)

// stage is how far a request has come.
type stage uint8

const (
	begun    stage = iota
	awaiting       // its body was asked for
	holding        // its body comes by itself; the answer to its headers waits for it
	decided        // an endpoint was chosen, or Envoy went on without us
	answered       // its response headers have come
)

// stream is the state of one request. All of it belongs to the goroutine that
// serves the request's gRPC stream.
type stream struct {
	server   *Server
	settings *Settings
	record   Record

	stage stage
	mode  bodyMode // of the request body, as Envoy is configured
	back  bodyMode // of the response body
	head  requestHead
	// unasked: the body comes without waiting for the answer to the headers.
	unasked bool
	// observed: Envoy takes no answers. broken: a message was not answered.
	observed, broken bool
	held             hold
	rec              recorded
	// inspecting is nil unless the response is inspected.
	inspecting *inspecting
	// tried is nil unless a policy is on trial in the pool.
	tried *tried
	// said is what Envoy's configuration says of the request.
	said  ChosenPolicy
	pools *Pools // those that the request began with
	pool  *Pool
	// byModel: the body may name another pool. rerouted: Envoy has to be told of the
	// pool.
	byModel, rerouted bool
	// policy is the one that the request began with.
	policy route.Policy
	slot   load.Reservation
	holds  bool
	// reserved is what the request has of the budget of all bodies, in bytes.
	reserved int64
	// one is room for the only answer that most messages have.
	one [1]*extprocv3.ProcessingResponse
}

// handle answers one message; without ok the stream is to be ended, which lets
// the request go on without us. A panic is a defect of ours that the request
// must not pay for.
func (s *stream) handle(m *extprocv3.ProcessingRequest) (responses []*extprocv3.ProcessingResponse, ok bool) {
	defer func() {
		if recover() != nil {
			s.broken = true
			s.panicked()
			responses, ok = nil, false
		}
	}()
	if s.stage == holding {
		return s.whileHolding(m)
	}
	response := s.answer(m)
	switch {
	case response != nil:
		return append(s.one[:0], response), true
	default:
		return nil, s.stage == holding
	}
}

// answer returns the answer to a message, nil if there is none.
func (s *stream) answer(m *extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse {
	switch r := m.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		if s.stage != begun {
			return s.server.toHeaders(unchanged) // headers come once; a second decision would lose the first one's slot
		}
		s.listen(m)
		if policies := s.settings.Policies; policies != nil {
			s.said = policies.Policy(s.record.Context, m)
		}
		a := s.requestHeaders(r.RequestHeaders)
		if s.stage == holding {
			return nil
		}
		return s.server.toHeaders(a)
	case *extprocv3.ProcessingRequest_RequestBody:
		a := s.requestBody(r.RequestBody)
		if s.mode == modeDuplex {
			a.echo = r.RequestBody
		}
		return s.server.toBody(a)
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		if s.responseHeaders(m, r.ResponseHeaders); s.stage == answered {
			return s.withDecision(s.inspect(r.ResponseHeaders), r.ResponseHeaders)
		}
		return passResponseHeaders
	case *extprocv3.ProcessingRequest_ResponseBody:
		s.inspectBody(r.ResponseBody)
		return s.passing(m)
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		s.inspectTrailers()
		return s.passing(m)
	default:
		return s.passing(m)
	}
}

// listen notes how Envoy is configured, from its first message.
func (s *stream) listen(m *extprocv3.ProcessingRequest) {
	s.mode, s.observed = modeBuffered, m.GetObservabilityMode()
	if p := m.GetProtocolConfig(); p != nil {
		s.mode, s.back = p.GetRequestBodyMode(), p.GetResponseBodyMode()
		s.unasked = s.mode == modeDuplex || s.mode == modeStreamed && p.GetSendBodyWithoutWaitingForHeaderResponse()
	}
}

// requestHeaders decides at once when no body is needed or comes, and asks for
// the whole body otherwise.
func (s *stream) requestHeaders(m *extprocv3.HttpHeaders) answer {
	s.head = readHead(m.GetHeaders(), s.settings.TenantHeader, s.settings.ComponentHeader)
	s.record.TraceParent, s.record.TraceState = s.head.traceParent, s.head.traceState
	s.record.RequestID, s.record.Probe = printable(s.head.requestID, 64), s.head.probe
	var pathModel string
	s.record.API, pathModel = prefix.Classify(s.head.prefix.Path)
	s.findPool(pathModel)

	switch {
	case m.GetEndOfStream():
		return s.decide(route.Request{}, NoText, true)
	case !s.needsBody():
		return s.alsoRead(s.decideWithoutBody(NoProblem))
	}
	if s.unasked && !s.observed && !s.head.upgrade && s.head.prefix.NeedsBody() {
		s.stage = holding
		return unchanged
	}
	if p := s.head.unread(s.settings.BodyLimit); p != NoProblem {
		return s.decideWithoutBody(p)
	}
	if s.mode != modeNone && s.mode != modeBuffered && s.mode != modePartial {
		return s.decideWithoutBody(UnsupportedMode)
	}
	if !s.reserveBody(s.head.contentLength) {
		return s.decideWithoutBody(Overloaded)
	}
	s.stage = awaiting
	return answer{setBodyMode: s.mode != modeBuffered, bodyMode: modeBuffered}
}

// needsBody reports whether the choice depends on the body: on the prompt, or on the
// model.
func (s *stream) needsBody() bool {
	table := s.pool.Router.Table()
	return s.byModel || table.LooksAtModels() || (s.policy.NeedsKey() || s.splits() != nil) && table.Candidates() >= 2
}

// decideWithoutBody decides at the headers and spares the body the detour.
// Retries are safe where the body does not pass through this filter at all, or
// is in Envoy's buffer as a whole; in the other modes a failure of ours would
// make Envoy send parts of it twice.
func (s *stream) decideWithoutBody(p Problem) answer {
	a := s.decide(route.Request{}, p, s.mode == modeNone || s.mode == modeBuffered)
	a.setBodyMode, a.bodyMode = s.mode == modeBuffered || s.mode == modePartial, modeNone
	return a
}

// requestBody decides on the body's text. In the modes that are steered by it
// the first message holds all of the body that will come.
func (s *stream) requestBody(m *extprocv3.HttpBody) answer {
	s.record.BodyBytes += int64(len(m.GetBody()))
	if s.rec.reading {
		s.readForRecorder(m)
	}
	if s.stage != awaiting {
		return unchanged
	}
	// With trailers the last of the body does not end the stream.
	complete := m.GetEndOfStream() || s.record.BodyBytes == s.head.contentLength
	// In partial mode Envoy at times sends a body before trailers twice when
	// retries are on.
	retry := m.GetEndOfStream() || complete && s.mode != modePartial
	return s.decideOn(complete, retry, m)
}

// decideOn decides on the text of a body, of which more may come unless it is
// complete.
func (s *stream) decideOn(complete, retry bool, parts ...*extprocv3.HttpBody) answer {
	s.record.Scanned = time.Now()
	length := s.readLength()
	scanner, result := s.scan(length, complete, parts)
	if s.changePool(&result) {
		s.server.scanners.Put(scanner)
		length = s.readLength()
		scanner, result = s.scan(length, complete, parts)
	}
	if s.chooseArm(&result) {
		s.server.scanners.Put(scanner)
		length = s.readLength()
		scanner, result = s.scan(length, complete, parts)
	}
	defer s.server.scanners.Put(scanner)
	s.note(&result)
	s.record.PromptChars = max(result.Chars, s.longer(&result, length))
	a := s.decide(route.Request{
		Key: result.Key, Keyed: result.Kind != prefix.None, Levels: result.Levels,
		Chars: s.record.PromptChars, Model: result.Model, Adapter: result.Adapter,
	}, NoProblem, retry)
	s.recordDecided(result, length, complete, parts)
	s.awaitText(&result, length, complete, parts)
	return a
}

// readLength is how many characters of the prompt are read: one at least, where
// the body is read for its model, and enough to tell whose policy decides.
func (s *stream) readLength() int {
	length := max(s.policy.ReadLength(), 1)
	if split := s.splits(); split != nil && !s.tried.armed {
		length = max(length, split.ReadLength())
	}
	return length
}

// scan reads the prompt in a body, of at most so many characters. The result is
// valid until the scanner is given back.
func (s *stream) scan(length int, complete bool, parts []*extprocv3.HttpBody) (*prefix.Scanner, prefix.Result) {
	scanner := s.server.scanners.Get(s.head.prefix, prefix.Options{PrefixLength: length, MaxInflate: s.settings.InflateLimit})
	for _, part := range parts {
		scanner.Feed(part.GetBody())
	}
	return scanner, scanner.Finish(complete)
}

// longer is how many characters a prompt may have that goes on behind the length that
// was read of it: about as many as the body has bytes.
func (s *stream) longer(r *prefix.Result, length int) int {
	if r.Chars < length {
		return 0
	}
	return int(max(s.record.BodyBytes, s.head.contentLength))
}

// decide chooses an endpoint and takes a slot there. retry switches Envoy's
// retries on.
func (s *stream) decide(request route.Request, p Problem, retry bool) answer {
	if s.record.Scanned.IsZero() {
		s.record.Scanned = time.Now()
	}
	s.record.Keyed = time.Now()
	request.Random, request.Now = s.server.random(), s.server.at(s.record.Keyed)
	decision := &s.record.Decision
	s.slot = s.pool.Router.Table().PickInto(decision, s.policy, &request)
	s.stage = decided
	if decision.Chosen != "" {
		s.server.holding.Add(1)
		s.holds = true
	}
	s.record.Decided = time.Now()
	s.releaseBody()
	s.problem(p)
	if decision.Reason == route.NoEndpoints {
		s.problem(NoEndpoints)
	}
	a := answer{decided: true, fleet: decision.Candidates}
	copy(a.choices[:], decision.Choices())
	if s.settings.DecisionMetadata {
		a.told = s.record.decisionMetadata()
	}
	if a.forged = s.head.pooled; s.rerouted {
		a.cluster = s.pool.Cluster
	}
	switch {
	case s.head.full:
		s.problem(HeadersFull)
		a.metadataOnly, a.steered = true, s.head.steered
	case retry && a.choices[0] != "":
		a.retryOn, a.maxRetries = s.settings.retryOn, s.settings.maxRetries
		if n := len(decision.Choices()) - 1; decision.AdapterSet > 0 && n < s.settings.RetryAttempts {
			a.retryOn, a.maxRetries = onlyFor(n, s.settings.retryOn) // Envoy would go on to who lacks the adapter
		}
	}
	s.await(&request)
	s.server.observer.Decided(&s.record)
	return a
}

// note records what was read of the body. The words in it are the client's, so
// they are cut; the text itself is not recorded at all.
func (s *stream) note(r *prefix.Result) {
	const longest = 128
	s.record.API, s.record.KeyChars = r.API, r.Chars
	s.record.HasTenant = r.Tenant != ""
	s.record.Model, s.record.Adapter = printable(r.Model, longest), printable(r.Adapter, longest)
	for _, n := range []struct {
		note    prefix.Notes
		problem Problem
	}{
		{prefix.NoteRawFallback, NotJSON},
		{prefix.NoteCut, BodyCut},
		{prefix.NoteInflateCut, InflateLimit},
		{prefix.NoteGzipBad, BrokenEncoding},
		{prefix.NoteEncoding, UnknownEncoding},
		{prefix.NoteDepth, TooDeep},
		{prefix.NoteTenantInvalid, InvalidTenant},
	} {
		if r.Notes.Has(n.note) {
			s.problem(n.problem)
		}
	}
	if r.Kind == prefix.None {
		s.problem(NoText)
	}
}

func (s *stream) problem(p Problem) {
	if p != NoProblem {
		s.record.Problems = append(s.record.Problems, p)
	}
}

// panicked tells of a panic that was recovered.
func (s *stream) panicked() {
	s.problem(Panicked)
	defer func() { _ = recover() }() // the observer may be what panics
	s.server.observer.Panicked(&s.record, debug.Stack())
}

// end gives back whatever the request still holds. A panic here would end the
// program, and with it the counts of all other requests.
func (s *stream) end() {
	defer func() {
		if recover() != nil {
			s.panicked()
		}
	}()
	s.releaseBody()
	if s.slot.Release(); s.holds {
		s.server.holding.Add(-1)
	}
	if s.tried != nil {
		s.tried.slots.Release()
	}
	s.endRecording()
	s.endInspection()
	if s.stage >= decided {
		s.record.Unanswered = s.stage == decided
		s.server.observer.Ended(&s.record)
	}
}

// onlyFor returns the header values of fewer retries than usual.
func onlyFor(attempts int, retryOn string) (on, most string) {
	if attempts < 1 || retryOn == "" {
		return "", ""
	}
	return retryOn, strconv.Itoa(attempts)
}
