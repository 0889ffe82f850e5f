package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
)

// manyNames is a server in which clients' words matter: models that are pools' or
// adapters, tenants, components.
const manyNames = `listen: {extProc: "127.0.0.1:0", xds: "", admin: "127.0.0.1:0"}
routingConfig: {routingStrategy: PREFIX_AWARE}
membership: {static: [{address: "10.0.0.1:80"}, {address: "10.0.0.2:80"}, {address: "10.0.0.3:80"}]}
health: {path: ""}
adapters: {sticky: 2, models: ["lora-*"]}
component: {header: x-component}
pools:
- {name: other, models: ["small-*"], routingConfig: {routingStrategy: KV_AWARE}, membership: {static: [{address: "10.0.1.1:80"}, {address: "10.0.1.2:80"}]}, health: {path: ""}}
`

// oneRequest is Envoy's end of the stream of a request: its messages, one after the other.
type oneRequest struct {
	grpc.ServerStream
	ctx      context.Context
	messages []*extprocv3.ProcessingRequest
}

func (o *oneRequest) Context() context.Context                 { return o.ctx }
func (o *oneRequest) Send(*extprocv3.ProcessingResponse) error { return nil }
func (o *oneRequest) Recv() (*extprocv3.ProcessingRequest, error) {
	if len(o.messages) == 0 {
		return nil, io.EOF
	}
	next := o.messages[0]
	o.messages = o.messages[1:]
	return next, nil
}

// request is a chat completion of a tenant with a model, and a response.
func request(tenant, model string, i int) []*extprocv3.ProcessingRequest {
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"%s %d"}]}`, model, strings.Repeat("words ", 100), i)
	headers := func(pairs ...string) *extprocv3.HttpHeaders {
		m := new(corev3.HeaderMap)
		for i := 0; i < len(pairs); i += 2 {
			m.Headers = append(m.Headers, &corev3.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
		}
		return &extprocv3.HttpHeaders{Headers: m}
	}
	return []*extprocv3.ProcessingRequest{
		{Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: headers(
			":method", "POST", ":path", "/v1/chat/completions", "content-type", "application/json", "content-length", fmt.Sprint(len(body)),
			"x-amzn-sagemaker-prefix-aware-id", tenant, "x-component", tenant, "x-request-id", tenant)}},
		{Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{Body: []byte(body), EndOfStream: true}}},
		{Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: headers(":status", "200")}},
	}
}

// 10,000 tenants and 1,000 models that clients make up, adapters among them, add no
// series but those of the hottest prefixes, of which each pool has ten at most.
func TestSeriesDoNotGrowWithTenantsAndModels(t *testing.T) {
	t.Parallel()
	p := startWith(t, t.TempDir(), manyNames)
	p.settled(t)
	const hotSeries = 2 * 2 * 10 // a share and homes, two pools, ten prefixes
	send := func(first, n int) {
		t.Helper()
		for i := first; i < first+n; i++ {
			model := fmt.Sprintf([]string{"made-up-%d", "lora-%d", "small-%d", "small-lora-%d"}[i%4], i%1000)
			o := &oneRequest{ctx: t.Context(), messages: request(fmt.Sprint("tenant-", i), model, i)}
			if err := p.extproc.Process(o); err != nil || len(o.messages) > 0 {
				t.Fatalf("request %d: error %v, %d messages were not read", i, err, len(o.messages))
			}
		}
	}
	send(0, 100)
	before, _ := p.series(t)
	send(100, 10_000)
	after, hot := p.series(t)
	if after != before {
		t.Errorf("%d series, before 10,000 more tenants %d", after, before)
	}
	if hot > hotSeries {
		t.Errorf("%d series of hot prefixes, want at most %d", hot, hotSeries)
	}
	t.Logf("%d series, and %d of hot prefixes", after, hot)
}

// series counts what is exposed, and apart from it that of hot prefixes. No label may
// hold a word of a client's.
func (r running) series(t *testing.T) (n, hot int) {
	t.Helper()
	families, err := r.metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				for _, word := range []string{"tenant-", "made-up-", "lora-", "small-"} {
					if strings.Contains(l.GetValue(), word) {
						t.Fatalf("%s has the label %s", f.GetName(), l)
					}
				}
			}
			if strings.HasPrefix(f.GetName(), "warmpath_hot_prefix_") {
				hot++
				continue
			}
			n++
		}
	}
	return n, hot
}
