package extproc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/warmpath/warmpath/internal/route"
)

// Bounds of one input, so that it takes milliseconds.
const (
	fuzzMessages = 64
	fuzzBytes    = 128 << 10
	fuzzMacro    = 20_000
)

// separator stands between two messages of FuzzWire. An unlikely word instead of
// lengths lets a mutation hit one message without breaking all behind it.
var separator = []byte("\xff\xfe\xfd\xfc")

// FuzzScript plays any script, in the notation of testdata/scripts.md, of which
// lines that mean nothing are left out.
func FuzzScript(f *testing.F) {
	for i, lines := range goldenScripts(f) {
		f.Add(uint16(2*i), lines)
		f.Add(uint16(1<<11+2), lines)
	}
	f.Add(uint16(2), "headers :method=POST :path=/v1/chat/completions?CANARY-7f3a content-length=96 authorization=CANARY-7f3a x-tenant-id=CANARY-7f3a\n"+
		`body eos {"prompt_cache_key":"CANARY-7f3a","user":"CANARY-7f3a","messages":[{"role":"CANARY-7f3a","content":"CANARY-7f3a"}]}`)
	f.Add(uint16(2), "headers :method=POST :path=/CANARY-7f3a/invocations content-encoding=CANARY-7f3a content-length=11 mode:FULL_DUPLEX_STREAMED\n"+
		"body more CANARY\nbody eos -7f3a\nresponse 200 from=10.0.0.3:80\nresponse-body eos CANARY-7f3a")
	f.Fuzz(func(t *testing.T, choice uint16, script string) {
		var messages []*extprocv3.ProcessingRequest
		for _, line := range strings.SplitN(script, "\n", fuzzMessages) {
			if m, err := parseMessage(line); err == nil && boundedMacros(line) {
				messages = append(messages, m)
			}
		}
		checkAnyStream(t, choice, messages)
	})
}

// FuzzWire plays any messages as they come over the wire, also such as no script
// can write: without their parts, with attributes and metadata of any form.
func FuzzWire(f *testing.F) {
	for i, lines := range goldenScripts(f) {
		var wire [][]byte
		for line := range strings.Lines(lines) {
			if m, err := parseMessage(strings.TrimSuffix(line, "\n")); err == nil {
				wire = append(wire, encode(f, m))
			}
		}
		f.Add(uint16(2*i), bytes.Join(wire, separator))
	}
	for _, c := range handed(f) {
		head, body := asSent(c.path, "application/json", "", "team-a", c.body)
		f.Add(uint16(2), bytes.Join([][]byte{encode(f, head), encode(f, body)}, separator))
	}
	f.Fuzz(func(t *testing.T, choice uint16, wire []byte) {
		if len(wire) > fuzzBytes {
			return
		}
		var messages []*extprocv3.ProcessingRequest
		for _, part := range bytes.SplitN(wire, separator, fuzzMessages) {
			m := new(extprocv3.ProcessingRequest)
			if proto.Unmarshal(part, m) == nil {
				messages = append(messages, m)
			}
		}
		checkAnyStream(t, choice, messages)
	})
}

func encode(t testing.TB, m *extprocv3.ProcessingRequest) []byte {
	t.Helper()
	wire, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

var macroNumber = regexp.MustCompile(`(?:<(?:pad|nest) |\*)(\d+)`)

func boundedMacros(line string) bool {
	for _, n := range macroNumber.FindAllStringSubmatch(line, -1) {
		if count, err := strconv.Atoi(n[1]); err != nil || count > fuzzMacro {
			return false
		}
	}
	return len(line) < fuzzBytes
}

// checkAnyStream plays messages to a server whose settings are chosen by a number.
func checkAnyStream(t *testing.T, choice uint16, messages []*extprocv3.ProcessingRequest) {
	policy, settings, book := prefixAware(), testSettings, new(notebook)
	policy.Strategy = []route.Strategy{route.PrefixAware, route.KVAware, route.LeastOutstandingRequests, route.Random}[choice>>1%4]
	settings.TotalBodies = []int64{0, 0, 50, 4096}[choice>>3%4]
	if choice>>5%2 == 1 {
		settings.Recorder = book
	}
	settings.Inspect = []float64{0, 1}[choice>>11%2]
	settings.DecisionMetadata, settings.DecisionHeader = choice>>12%2 == 1, choice>>13%2 == 1
	observer := &recorder{panicIn: []string{"", "", "", "", "decided", "served", "ended", "panicked"}[choice>>6%8]}
	server := New(newRouter(t, policy, []int{3, 2, 1, 0}[choice>>9%4]), settings, observer, one)
	if timed(messages) {
		checkTimed(t, server, messages)
	} else {
		checkLockstep(t, server, messages)
	}
	atRest(t, server)
	d, e := count(observer.events, "decided"), count(observer.events, "ended")
	if d > 1 || d != e {
		t.Errorf("%d decisions and %d ends were observed", d, e)
	}
	checkRecords(t, observer.records)
}

// timed reports whether the stream may be served by two goroutines.
func timed(messages []*extprocv3.ProcessingRequest) bool {
	for _, m := range messages {
		if m.GetProtocolConfig().GetSendBodyWithoutWaitingForHeaderResponse() {
			return true
		}
	}
	return false
}

// checkLockstep plays the messages one by one: each has one answer at most, all
// come in order, and the parts of a body that have to be handed back come back as
// they were.
func checkLockstep(t *testing.T, server *Server, messages []*extprocv3.ProcessingRequest) {
	decisions := 0
	var request, response bodyMode
	var unanswered []*extprocv3.ProcessingRequest
	begun := false
	f := &fakeStream{ctx: t.Context(), messages: messages, end: io.EOF}
	f.answered = func(i int, answers []*extprocv3.ProcessingResponse) {
		m := messages[i]
		if m.GetRequestHeaders() != nil && !begun {
			begun = true
			request, response = m.GetProtocolConfig().GetRequestBodyMode(), m.GetProtocolConfig().GetResponseBodyMode()
		}
		if m.GetObservabilityMode() {
			return
		}
		if unanswered = append(unanswered, m); len(answers) > len(unanswered) {
			t.Fatalf("after message %d: %d answers to %d messages", i, len(answers), len(unanswered))
		}
		for _, r := range answers {
			checkAnswer(t, unanswered[0], r)
			checkBody(t, request == modeDuplex, unanswered[0].GetRequestBody(), r.GetRequestBody().GetResponse())
			checkBody(t, response == modeDuplex, unanswered[0].GetResponseBody(), r.GetResponseBody().GetResponse())
			checkDestination(t, server, r)
			unanswered = unanswered[1:]
			if isDecision(r) {
				decisions++
			}
		}
	}
	defect := server.observer.(*recorder).panicIn != ""
	if err := server.Process(f); err != nil && !(defect && (request == modeDuplex || response == modeDuplex)) {
		t.Errorf("Process returned %v", err) // a defect must fail a request whose body is on its way
	}
	if f.flush(); decisions > 1 {
		t.Errorf("%d decisions were sent", decisions)
	}
}

// checkBody holds an answer to a part of a body against the part: handed back as
// it is where Envoy keeps no copy, and else not touched.
func checkBody(t *testing.T, echoed bool, part *extprocv3.HttpBody, answer *extprocv3.CommonResponse) {
	if part == nil {
		return
	}
	back := answer.GetBodyMutation().GetStreamedResponse()
	switch {
	case echoed && (back == nil || !bytes.Equal(back.GetBody(), part.GetBody()) || back.GetEndOfStream() != part.GetEndOfStream()):
		t.Errorf("of a part of %d bytes, eos=%v, came back %d, eos=%v", len(part.GetBody()), part.GetEndOfStream(), len(back.GetBody()), back.GetEndOfStream())
	case !echoed && answer.GetBodyMutation() != nil:
		t.Errorf("a part of %d bytes was changed", len(part.GetBody()))
	}
}

// checkDestination wants members only, each once.
func checkDestination(t *testing.T, server *Server, r *extprocv3.ProcessingResponse) {
	_, named, _ := destination(r)
	if named == "" {
		return
	}
	seen := make(map[string]bool)
	for address := range strings.SplitSeq(named, ",") {
		if _, member := server.pools.Load().fallback.Router.Loads().Lookup(address); !member || seen[address] {
			t.Errorf("%q is no member or is named twice in %q", address, named)
		}
		seen[address] = true
	}
}

// freeStream hands messages out without waiting for answers.
type freeStream struct {
	grpc.ServerStream
	ctx      context.Context
	messages []*extprocv3.ProcessingRequest
	next     atomic.Int64
	answers  []*extprocv3.ProcessingResponse
}

func (s *freeStream) Context() context.Context { return s.ctx }

func (s *freeStream) Recv() (*extprocv3.ProcessingRequest, error) {
	if i := s.next.Add(1); int(i) <= len(s.messages) {
		return s.messages[i-1], nil
	}
	return nil, io.EOF
}

func (s *freeStream) Send(r *extprocv3.ProcessingResponse) error {
	s.answers = append(s.answers, r)
	return nil
}

func checkTimed(t *testing.T, server *Server, messages []*extprocv3.ProcessingRequest) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &freeStream{ctx: ctx, messages: messages}
	if err := server.Process(s); err != nil {
		t.Errorf("Process returned %v", err)
	}
	decisions := 0
	for _, r := range s.answers {
		if checkDestination(t, server, r); isDecision(r) {
			decisions++
		}
	}
	if len(s.answers) > len(messages) || decisions > 1 {
		t.Errorf("%d answers with %d decisions to %d messages", len(s.answers), decisions, len(messages))
	}
}

// checkRecords wants what observers are told of to be bounded and without what a
// client has written, but for the names that are meant to be told.
func checkRecords(t *testing.T, records []Record) {
	for _, r := range records {
		if len(r.RequestID) > 64 || len(r.Model) > 128 || len(r.Adapter) > 128 || len(r.Problems) > len(problems) {
			t.Errorf("not bounded: %+v", r)
		}
		for _, name := range []string{r.RequestID, r.Model, r.Adapter} {
			if strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) {
				t.Errorf("%q is not printable", name)
			}
		}
		r.Context, r.RequestID, r.Model, r.Adapter, r.TraceParent, r.TraceState, r.Served = nil, "", "", "", "", "", ""
		if s := fmt.Sprintf("%+v", r); strings.Contains(s, "CANARY-7f3a") {
			t.Errorf("the client's words are in %s", s)
		}
	}
}

// goldenScripts are the messages of all streams in testdata/scripts.
func goldenScripts(t testing.TB) (scripts []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/scripts/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for block := range strings.SplitSeq("\n"+string(text), "\nstream") {
			if lines, _, ok := strings.Cut(block, "\n----"); ok {
				_, lines, _ = strings.Cut(lines, "\n")
				scripts = append(scripts, lines)
			}
		}
	}
	return scripts
}
