package main

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
)

var endpoints = []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}

// conversation is a stream of Envoy's messages, and keeps the answers.
type conversation struct {
	grpc.ServerStream
	ctx      context.Context
	messages []*extprocv3.ProcessingRequest
	answers  []*extprocv3.ProcessingResponse
}

func (c *conversation) Context() context.Context { return c.ctx }

func (c *conversation) Recv() (*extprocv3.ProcessingRequest, error) {
	if len(c.messages) == 0 {
		return nil, io.EOF
	}
	m := c.messages[0]
	c.messages = c.messages[1:]
	return m, nil
}

func (c *conversation) Send(r *extprocv3.ProcessingResponse) error {
	c.answers = append(c.answers, proto.CloneOf(r))
	return nil
}

// answers returns what a server says to the messages, with every list of
// endpoints in ascending order: which is chosen may differ.
func answers(t *testing.T, s extprocv3.ExternalProcessorServer, messages []*extprocv3.ProcessingRequest) []*extprocv3.ProcessingResponse {
	t.Helper()
	c := &conversation{ctx: t.Context(), messages: messages}
	if err := s.Process(c); err != nil {
		t.Fatal(err)
	}
	for _, r := range c.answers {
		var common *extprocv3.CommonResponse
		switch r := r.GetResponse().(type) {
		case *extprocv3.ProcessingResponse_RequestHeaders:
			common = r.RequestHeaders.GetResponse()
		case *extprocv3.ProcessingResponse_RequestBody:
			common = r.RequestBody.GetResponse()
		}
		for _, h := range common.GetHeaderMutation().GetSetHeaders() {
			h.GetHeader().RawValue = []byte(inOrder(string(h.GetHeader().GetRawValue())))
		}
		if m := r.GetDynamicMetadata(); m != nil {
			fields := m.GetFields()[extproc.DestinationNamespace].GetStructValue().GetFields()
			for key, v := range fields {
				fields[key] = structpb.NewStringValue(inOrder(v.GetStringValue()))
			}
		}
	}
	return c.answers
}

func inOrder(list string) string {
	parts := strings.Split(list, ",")
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// newWarmpath is warmpath with the defaults of its configuration.
func newWarmpath(t testing.TB, strategy route.Strategy) *extproc.Server {
	t.Helper()
	var members []fleet.Endpoint
	for _, e := range endpoints {
		members = append(members, fleet.Endpoint{Address: e, Weight: 1})
	}
	set, _ := fleet.NewSet(members)
	router := route.NewRouter(route.Policy{Strategy: strategy, PrefixLength: 4096})
	router.SetMembership(set)
	c := config.Default()
	s := extproc.Settings{
		TenantHeader: c.Tenant.Header, BodyLimit: c.Limits.RequestBodyBytes, InflateLimit: c.Limits.InflateBytes,
		RetryAttempts: c.Retry.Attempts,
	}
	for _, condition := range c.Retry.Conditions {
		s.RetryConditions = append(s.RetryConditions, string(condition))
	}
	return extproc.New(router, s, silent{}, rand.Uint64)
}

type silent struct{}

func (silent) Decided(*extproc.Record)          {}
func (silent) Served(*extproc.Record)           {}
func (silent) Ended(*extproc.Record)            {}
func (silent) Panicked(*extproc.Record, []byte) {}

func headers(end bool, pairs ...string) *extprocv3.HttpHeaders {
	h := &extprocv3.HttpHeaders{Headers: &corev3.HeaderMap{}, EndOfStream: end}
	for i := 0; i < len(pairs); i += 2 {
		h.Headers.Headers = append(h.Headers.Headers, &corev3.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return h
}

func requestHeaders(h *extprocv3.HttpHeaders) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{
		Request:        &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: h},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{RequestBodyMode: extprocfilterv3.ProcessingMode_NONE},
	}
}

// The server says what warmpath says, message by message, but for the endpoints:
// a comparison of the two is one of what stands behind equal answers.
func TestAnswersAsWarmpath(t *testing.T) {
	body := `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	post := []string{":method", "POST", ":path", "/v1/chat/completions", "content-type", "application/json"}
	toBody := &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: []byte(body), EndOfStream: true},
	}}
	rest := []*extprocv3.ProcessingRequest{
		{Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: headers(false, ":status", "200")}},
		{Request: &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extprocv3.HttpTrailers{}}},
	}
	for _, c := range []struct {
		name     string
		strategy route.Strategy
		head     *extprocv3.HttpHeaders
		asks     bool // for the body
	}{
		{"read", route.PrefixAware, headers(false, append(post, "content-length", "61")...), true},
		{"not read", route.Random, headers(false, append(post, "content-length", "61")...), false},
		{"too large", route.PrefixAware, headers(false, append(post, "content-length", "4194305")...), false},
		{"of unknown length", route.PrefixAware, headers(false, post...), false},
		{"none", route.PrefixAware, headers(true, ":method", "GET", ":path", "/v1/models"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			messages := []*extprocv3.ProcessingRequest{requestHeaders(c.head)}
			if c.asks {
				messages = append(messages, toBody)
			}
			messages = append(messages, rest...)
			got := answers(t, newProcessor(endpoints, c.strategy == route.PrefixAware), messages)
			want := answers(t, newWarmpath(t, c.strategy), messages)
			if len(want) != len(messages) {
				t.Fatalf("warmpath gives %d answers to %d messages", len(want), len(messages))
			}
			if difference := cmp.Diff(want, got, protocmp.Transform()); difference != "" {
				t.Errorf("- warmpath, + noop:\n%s", difference)
			}
		})
	}
}

// The endpoints come in turn.
func TestChoicesRotate(t *testing.T) {
	p := newProcessor([]string{"a:1", "b:1", "c:1", "d:1"}, false)
	var got []string
	for range 8 {
		r := p.answer(requestHeaders(headers(true)))
		fields := r.GetDynamicMetadata().GetFields()[extproc.DestinationNamespace].GetStructValue().GetFields()
		got = append(got, fields[extproc.DestinationKey].GetStringValue())
	}
	slices.Sort(got)
	want := []string{"a:1,b:1,c:1", "b:1,c:1,d:1", "c:1,d:1,a:1", "d:1,a:1,b:1"}
	for i, g := range got {
		if g != want[i/2] {
			t.Fatalf("eight choices %q, want each of %q twice", got, want)
		}
	}
}
