package extproc

import (
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/internal/prefix"
)

// RecordChars is how much of a prompt is read for a recording, in characters:
// 262,144 tokens, more than what nearly every model takes.
const RecordChars = 1 << 20

// Recorder writes down what requests come, for replays. Its methods are called
// concurrently, hold the request up, and must not block.
type Recorder interface {
	// Sampled tells for how many requests the one with this beginning stands in the
	// record, itself included; 0 if it is not recorded. first is the key of a prompt's
	// first level, or of the whole of one that has none. It is called once for each
	// request whose prompt was read.
	Sampled(first uint64) (standsFor int)
	// Begin takes the beginning of a sampled request. nil does not record it.
	Begin(Beginning) Recording
}

// Recording is one request that is being recorded.
type Recording interface {
	// End is called once, at the end of the request.
	End(Outcome)
}

// Beginning is what a recorder is told of a prompt.
type Beginning struct {
	// StandsFor is what Sampled has told.
	StandsFor int
	// Levels and Key are those of [prefix.Result], and so is Chars, of the first
	// RecordChars characters. The levels must be copied.
	Levels []uint64
	Key    uint64
	Chars  int
	// Length is how many characters the prompt has; beyond RecordChars the bytes of
	// its body stand for them.
	Length int
	// Tenant and Model are the client's words. They must not be kept as they are.
	Tenant, Model string
	// Generates says that the answer is text that a model writes, not numbers.
	Generates bool
}

// Outcome is what became of a recorded request.
type Outcome struct {
	// Began is when the request came, Decided when its endpoint was chosen, Answered
	// when its response's headers came (zero if they did not), Ended when the last
	// byte had passed.
	Began, Decided, Answered, Ended time.Time
	// Status is the response's code, 0 if there was none.
	Status int
	// Streamed says that the response is a stream of events.
	Streamed bool
}

// recorded is the part of a stream's state that a recording takes.
type recorded struct {
	recording Recording // nil if the request is not recorded
	// reading: the body comes for the recording alone; the request is decided.
	reading  bool
	streamed bool
}

// alsoRead has the body of a request that was decided without it sent for the
// recorder, or for a policy on trial, if it is known to fit into Envoy's buffer. The decision stands.
func (s *stream) alsoRead(a answer) answer {
	if s.settings.Recorder == nil && !s.alsoTried() || s.unasked || s.observed || s.head.unread(s.settings.BodyLimit) != NoProblem {
		return a
	}
	if s.mode != modeNone && s.mode != modeBuffered && s.mode != modePartial {
		return a
	}
	if !s.reserveBody(s.head.contentLength) {
		return a
	}
	s.rec.reading = true
	a.setBodyMode, a.bodyMode = s.mode != modeBuffered, modeBuffered
	return a
}

// readForRecorder reads a body that comes for the recorder, or a policy on trial, alone. What decides
// whether it is sampled is all that is read of others.
func (s *stream) readForRecorder(m *extprocv3.HttpBody) {
	s.rec.reading = false // trailers may bring an empty second part
	defer s.releaseBody()
	defer s.unrecordable()
	parts := []*extprocv3.HttpBody{m}
	complete := m.GetEndOfStream() || s.record.BodyBytes == s.head.contentLength
	s.awaitText(nil, 0, complete, parts)
	if s.settings.Recorder == nil {
		return
	}
	scanner, result := s.scan(prefix.LevelChars, complete, parts)
	defer s.server.scanners.Put(scanner)
	s.offer(result, prefix.LevelChars, complete, parts)
}

// recordDecided offers a request to the recorder that was decided on its body.
func (s *stream) recordDecided(r prefix.Result, length int, complete bool, parts []*extprocv3.HttpBody) {
	if s.settings.Recorder == nil {
		return
	}
	defer s.unrecordable()
	s.offer(r, length, complete, parts)
}

// unrecordable keeps a defect in recording from the request, which is decided.
func (s *stream) unrecordable() {
	if recover() != nil {
		s.panicked()
	}
}

// offer offers a request to the recorder. r is what was read of at most length
// characters; if there may be more and the request is sampled, it is read again.
func (s *stream) offer(r prefix.Result, length int, complete bool, parts []*extprocv3.HttpBody) {
	if r.Kind == prefix.None || r.API == prefix.Tokenize {
		return
	}
	first := r.Key
	if len(r.Levels) > 0 {
		first = r.Levels[0]
	}
	standsFor := s.settings.Recorder.Sampled(first)
	if standsFor == 0 {
		return
	}
	if r.Chars >= length && length < RecordChars {
		scanner, whole := s.scan(RecordChars, complete, parts)
		defer s.server.scanners.Put(scanner)
		r = whole
	}
	chars := r.Chars
	if chars >= RecordChars || !complete {
		chars = max(chars, int(max(s.record.BodyBytes, s.head.contentLength)))
	}
	s.rec.recording = s.settings.Recorder.Begin(Beginning{
		StandsFor: standsFor,
		Levels:    r.Levels, Key: r.Key, Chars: r.Chars, Length: chars,
		Tenant: r.Tenant, Model: r.Model, Generates: generates(r.API),
	})
}

// generates reports whether an API answers with text that a model writes.
func generates(a prefix.API) bool {
	switch a {
	case prefix.Embeddings, prefix.Rerank, prefix.Score:
		return false
	}
	return true
}

// recordAnswer notes how a recorded request was answered.
func (s *stream) recordAnswer(headers *corev3.HeaderMap) {
	if s.rec.recording == nil {
		return
	}
	for _, h := range headers.GetHeaders() {
		if h.GetKey() == "content-type" {
			s.rec.streamed = isEventStream(value(h))
		}
	}
}

// isEventStream tells the media types in which engines send tokens as they come.
func isEventStream(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream":
		return true
	}
	return false
}

// endRecording tells the recorder of the end.
func (s *stream) endRecording() {
	if s.rec.recording == nil {
		return
	}
	defer s.unrecordable()
	s.rec.recording.End(Outcome{
		Began: s.record.Began, Decided: s.record.Decided, Answered: s.record.Answered, Ended: time.Now(),
		Status: s.record.Status, Streamed: s.rec.streamed,
	})
}
