package extproc

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// A script has one message of Envoy's a line; testdata/scripts.md has
// the notation. parseMessage makes the message.
func parseMessage(line string) (*extprocv3.ProcessingRequest, error) {
	kind, rest, _ := strings.Cut(line, " ")
	m := new(extprocv3.ProcessingRequest)
	switch kind {
	case "headers":
		return m, parseHeaders(m, rest)
	case "response":
		return m, parseResponse(m, rest)
	case "body", "response-body":
		end, payload, _ := strings.Cut(rest, " ")
		if end != "eos" && end != "more" {
			return nil, fmt.Errorf("%q: want eos or more after %s", line, kind)
		}
		b := &extprocv3.HttpBody{Body: payloadOf(payload), EndOfStream: end == "eos"}
		if kind == "body" {
			m.Request = &extprocv3.ProcessingRequest_RequestBody{RequestBody: b}
		} else {
			m.Request = &extprocv3.ProcessingRequest_ResponseBody{ResponseBody: b}
		}
	case "trailers":
		m.Request = &extprocv3.ProcessingRequest_RequestTrailers{RequestTrailers: &extprocv3.HttpTrailers{}}
	case "response-trailers":
		m.Request = &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extprocv3.HttpTrailers{}}
	case "unknown":
	default:
		return nil, fmt.Errorf("no message %q", line)
	}
	return m, nil
}

// word is a flag, name=value (raw_value), name~value (the older field), either
// of them with a quoted value.
var word = regexp.MustCompile(`([^\s=~]+)(?:([=~])("(?:[^"\\]|\\.)*"|\S*))?`)

var repeated = regexp.MustCompile(`^\*(\d+)$`)

func parseHeaders(m *extprocv3.ProcessingRequest, rest string) error {
	h := &extprocv3.HttpHeaders{Headers: new(corev3.HeaderMap)}
	m.Request = &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: h}
	for _, w := range word.FindAllStringSubmatch(rest, -1) {
		name, value := w[1], w[3]
		if strings.HasPrefix(value, `"`) {
			var err error
			if value, err = strconv.Unquote(value); err != nil {
				return fmt.Errorf("%s: %w", w[0], err)
			}
		}
		if n := repeated.FindStringSubmatch(value); n != nil {
			count, _ := strconv.Atoi(n[1])
			value = strings.Repeat("a", count)
		}
		mode, isMode := strings.CutPrefix(name, "mode:")
		switch {
		case w[2] == "=":
			h.Headers.Headers = append(h.Headers.Headers, &corev3.HeaderValue{Key: name, RawValue: []byte(value)})
		case w[2] == "~":
			h.Headers.Headers = append(h.Headers.Headers, &corev3.HeaderValue{Key: name, Value: value})
		case name == "eos":
			h.EndOfStream = true
		case name == "nowait":
			m.GetProtocolConfig().SendBodyWithoutWaitingForHeaderResponse = true
		case name == "observe":
			m.ObservabilityMode = true
		case isMode:
			number, ok := extprocfilterv3.ProcessingMode_BodySendMode_value[mode]
			if !ok {
				return fmt.Errorf("no body mode %q", mode)
			}
			m.ProtocolConfig = &extprocv3.ProtocolConfiguration{
				RequestBodyMode: bodyMode(number), ResponseBodyMode: responseModeBeside(bodyMode(number)),
			}
		default:
			return fmt.Errorf("no flag %q", name)
		}
	}
	return nil
}

// responseModeBeside is the response body mode that a script's request body
// mode stands for: full duplex in both directions, else the shipped NONE.
func responseModeBeside(request bodyMode) bodyMode {
	if request == modeDuplex {
		return modeDuplex
	}
	return modeNone
}

func parseResponse(m *extprocv3.ProcessingRequest, rest string) error {
	status, rest, _ := strings.Cut(rest, " ")
	m.Request = &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extprocv3.HttpHeaders{
		Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: ":status", RawValue: []byte(status)}}},
	}}
	fields := make(map[string]any)
	for pair := range strings.FieldsSeq(rest) {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case "type", "encoding":
			headers := m.GetResponseHeaders().GetHeaders()
			headers.Headers = append(headers.Headers, &corev3.HeaderValue{Key: "content-" + name, RawValue: []byte(value)})
		case "from":
			fields["upstream.address"] = value
		case "attempts":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			fields["upstream.request_attempt_count"] = n
		default:
			return fmt.Errorf("no attribute %q", name)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	attributes, err := structpb.NewStruct(fields)
	m.Attributes = map[string]*structpb.Struct{"warmpath.ext_proc": attributes, "another.filter": {}}
	return err
}

var macro = regexp.MustCompile(`<(pad|nest) (\d+)>`)

// payloadOf expands <pad N> and <nest N>, and compresses what follows gzip:.
func payloadOf(text string) []byte {
	text, compressed := strings.CutPrefix(strings.ReplaceAll(text, "<line>", "\n"), "gzip:")
	text = macro.ReplaceAllStringFunc(text, func(s string) string {
		parts := macro.FindStringSubmatch(s)
		n, _ := strconv.Atoi(parts[2])
		if parts[1] == "pad" {
			return strings.Repeat("word ", n/5)
		}
		return strings.Repeat("[", n) + strings.Repeat("]", n)
	})
	if !compressed {
		return []byte(text)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// describe prints a response in a line.
func describe(r *extprocv3.ProcessingResponse) string {
	var b strings.Builder
	var common *extprocv3.CommonResponse
	switch x := r.GetResponse().(type) {
	case *extprocv3.ProcessingResponse_RequestHeaders:
		b.WriteString("headers")
		common = x.RequestHeaders.GetResponse()
	case *extprocv3.ProcessingResponse_RequestBody:
		b.WriteString("body")
		common = x.RequestBody.GetResponse()
	case *extprocv3.ProcessingResponse_RequestTrailers:
		b.WriteString("trailers")
	case *extprocv3.ProcessingResponse_ResponseHeaders:
		b.WriteString("response")
		common = x.ResponseHeaders.GetResponse()
	case *extprocv3.ProcessingResponse_ResponseBody:
		b.WriteString("response-body")
		common = x.ResponseBody.GetResponse()
	case *extprocv3.ProcessingResponse_ResponseTrailers:
		b.WriteString("response-trailers")
	default:
		fmt.Fprintf(&b, "%T", x)
	}
	for _, h := range common.GetHeaderMutation().GetSetHeaders() {
		fmt.Fprintf(&b, "\n  set %s: %s", h.GetHeader().GetKey(), value(h.GetHeader()))
	}
	for _, name := range common.GetHeaderMutation().GetRemoveHeaders() {
		fmt.Fprintf(&b, "\n  remove %s", name)
	}
	if s := common.GetBodyMutation().GetStreamedResponse(); s != nil {
		fmt.Fprintf(&b, "\n  echo %d bytes eos=%v", len(s.GetBody()), s.GetEndOfStream())
	}
	if common.GetClearRouteCache() {
		b.WriteString("\n  route again")
	}
	told := r.GetDynamicMetadata().GetFields()[DecisionNamespace].GetStructValue().GetFields()
	for _, name := range slices.Sorted(maps.Keys(told)) {
		fmt.Fprintf(&b, "\n  tell %s: %v", name, told[name].AsInterface())
	}
	if header, metadata, _ := destination(r); header != metadata {
		fmt.Fprintf(&b, "\n  metadata only: %s", metadata)
	}
	if o := r.GetModeOverride(); o != nil {
		fmt.Fprintf(&b, "\n  body mode %s (response headers %s, trailers %s)",
			o.GetRequestBodyMode(), o.GetResponseHeaderMode(), o.GetResponseTrailerMode())
		if back := o.GetResponseBodyMode(); back != modeNone {
			fmt.Fprintf(&b, ", of the response %s", back)
		}
	}
	return b.String()
}

// destination is the decision that a response carries, in both its forms.
func destination(r *extprocv3.ProcessingResponse) (header, metadata string, overwrites bool) {
	common := r.GetRequestHeaders().GetResponse()
	if common == nil {
		common = r.GetRequestBody().GetResponse()
	}
	overwrites = true
	for _, h := range common.GetHeaderMutation().GetSetHeaders() {
		//lint:ignore SA1019 the deprecated field would overrule the action
		if h.GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD || h.GetAppend() != nil {
			overwrites = false
		}
		if h.GetHeader().GetKey() == DestinationKey {
			header = value(h.GetHeader())
		}
	}
	namespace := r.GetDynamicMetadata().GetFields()[DestinationNamespace].GetStructValue()
	return header, namespace.GetFields()[DestinationKey].GetStringValue(), overwrites
}

// isDecision reports whether a response carries a decision, an empty one too.
func isDecision(r *extprocv3.ProcessingResponse) bool {
	header, metadata, _ := destination(r)
	removed := slices.Contains(r.GetRequestHeaders().GetResponse().GetHeaderMutation().GetRemoveHeaders(), DestinationKey) ||
		slices.Contains(r.GetRequestBody().GetResponse().GetHeaderMutation().GetRemoveHeaders(), DestinationKey)
	return header != "" || metadata != "" || removed
}

// checkAnswer is what holds for every answer, whatever the message.
func checkAnswer(t testing.TB, m *extprocv3.ProcessingRequest, r *extprocv3.ProcessingResponse) {
	t.Helper()
	header, metadata, overwrites := destination(r)
	// Metadata alone is for requests with no room for headers; it is printed.
	if header != metadata && header != "" {
		t.Errorf("the header says %q, the metadata %q", header, metadata)
	}
	if !overwrites {
		t.Errorf("a header is not overwritten: %v", r)
	}
	if asked, answered := phase(m), answerPhase(r); asked != answered {
		t.Errorf("%s was answered by %s", asked, answered)
	}
	if r.GetImmediateResponse() != nil {
		t.Errorf("a request was refused: %v", r)
	}
}

func phase(m *extprocv3.ProcessingRequest) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", m.GetRequest()), "*ext_procv3.ProcessingRequest_")
}

func answerPhase(r *extprocv3.ProcessingResponse) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", r.GetResponse()), "*ext_procv3.ProcessingResponse_")
}

var errCanceled = errors.New("rpc error: code = Canceled desc = context canceled")

// script is one stream that a golden file describes.
type script struct {
	server   *Server
	observer *recorder
	panicIn  string
	end      error
	sendErr  error
	out      strings.Builder
	// unanswered are messages whose answers wait for the body, in order.
	unanswered []*extprocv3.ProcessingRequest
}

// run plays the lines and prints what happened.
func (s *script) run(t *testing.T, lines string) string {
	t.Helper()
	var messages []*extprocv3.ProcessingRequest
	for line := range strings.Lines(lines) {
		m, err := parseMessage(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	decisions := 0
	f := &fakeStream{ctx: t.Context(), messages: messages, end: s.end, sendErr: s.sendErr}
	f.answered = func(i int, answers []*extprocv3.ProcessingResponse) {
		decisions += s.answered(t, messages[i], answers)
	}
	if err := s.server.Process(f); err != nil {
		t.Errorf("Process returned %v", err)
	}
	if f.flush(); f.next < len(messages) {
		fmt.Fprintf(&s.out, "the stream was ended; %d messages not read\n", len(messages)-f.next)
	}
	if decisions > 1 {
		t.Errorf("%d decisions in one stream", decisions)
	}
	idle(t, s.server.pools.Load().fallback.Router)
	s.printRecord()
	return s.out.String()
}

// answered checks and prints the answers to one message and returns how many
// of them were decisions.
func (s *script) answered(t *testing.T, m *extprocv3.ProcessingRequest, answers []*extprocv3.ProcessingResponse) (decisions int) {
	t.Helper()
	if !m.GetObservabilityMode() {
		s.unanswered = append(s.unanswered, m)
	}
	if len(answers) > len(s.unanswered) {
		t.Fatalf("%d answers to %d messages", len(answers), len(s.unanswered))
	}
	for _, r := range answers {
		checkAnswer(t, s.unanswered[0], r)
		s.unanswered = s.unanswered[1:]
		if isDecision(r) {
			decisions++
		}
		fmt.Fprintf(&s.out, "%s\n", describe(r))
	}
	if len(answers) == 0 {
		s.out.WriteString("no answer\n")
	}
	for _, c := range s.server.pools.Load().fallback.Router.Loads().Snapshot() {
		if c.Outstanding != 0 {
			fmt.Fprintf(&s.out, "  outstanding %s: %d\n", c.Address, c.Outstanding)
		}
	}
	return decisions
}

// printRecord prints what observers knew at the end.
func (s *script) printRecord() {
	if len(s.observer.records) == 0 {
		s.out.WriteString("not observed\n")
		return
	}
	r := s.observer.records[len(s.observer.records)-1]
	fmt.Fprintf(&s.out, "%s: %s %s", strings.Join(s.observer.events, " "), r.API, r.Decision.Reason)
	if r.Decision.Keyed {
		fmt.Fprintf(&s.out, " key=%016x chars=%d rank=%d", r.Decision.Key, r.KeyChars, r.Decision.Rank)
	}
	for _, field := range []struct {
		name  string
		value any
		zero  bool
	}{
		{"pool", r.Pool, r.Pool == ""},
		{"model", r.Model, r.Model == ""},
		{"adapter", r.Adapter, r.Adapter == ""},
		{"tenant", r.HasTenant, !r.HasTenant},
		{"bytes", r.BodyBytes, r.BodyBytes == 0},
		{"status", r.Status, r.Status == 0},
		{"served", r.Served, r.Served == ""},
		{"attempts", r.Attempts, r.Attempts == 0},
		{"missed", r.Missed, !r.Missed},
		{"problems", r.Problems, len(r.Problems) == 0},
	} {
		if !field.zero {
			fmt.Fprintf(&s.out, " %s=%v", field.name, field.value)
		}
	}
	if i := r.Inspection; i != nil {
		fmt.Fprintf(&s.out, " inspected=%s tokens=%d/%d text=%v", i.Result, i.CachedTokens, i.PromptTokens, !i.FirstToken.IsZero())
	}
	s.out.WriteByte('\n')
}
