package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
)

const tenantHeader = "x-amzn-sagemaker-prefix-aware-id"

// passing is the stream of a request that is over as soon as it was answered, used
// for one request after the other.
type passing struct {
	grpc.ServerStream
	ctx      context.Context
	seed     uint64
	messages [3]*extprocv3.ProcessingRequest
	at       int
	filler   string
}

func newPassing(ctx context.Context, seed uint64) *passing {
	return &passing{ctx: ctx, seed: seed, filler: strings.Repeat("the wheel turns slowly ", 50)}
}

// next makes the messages of a request: nobody else has its prompt, from the first
// character on, its tenant or its model. Every tenth client makes up a name for
// everything else that it can, too.
func (p *passing) next(n int) {
	prompt := fmt.Sprintf("%d of %d: %s", n, p.seed, p.filler[:700])
	body := fmt.Sprintf(`{"model":"model-%d","messages":[{"role":"user","content":"%s"}]}`, n, prompt)
	path, status := "/v1/chat/completions", "200"
	if n%10 == 0 {
		path, status = fmt.Sprintf("/v1/chat/completions?n=%d", n), strconv.Itoa(200+n/10%400)
	}
	p.at = 0
	p.messages = [3]*extprocv3.ProcessingRequest{
		{
			ProtocolConfig: &extprocv3.ProtocolConfiguration{RequestBodyMode: extprocfilterv3.ProcessingMode_NONE},
			Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{Headers: headers(
				":method", "POST", ":path", path, "content-type", "application/json", "content-length", strconv.Itoa(len(body)),
				tenantHeader, fmt.Sprintf("tenant-%d", n), "x-request-id", fmt.Sprintf("request-%d", n),
			)}},
		},
		{Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{Body: []byte(body), EndOfStream: true}}},
		{Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extprocv3.HttpHeaders{Headers: headers(":status", status)}}},
	}
}

func headers(pairs ...string) *corev3.HeaderMap {
	m := new(corev3.HeaderMap)
	for ; len(pairs) > 0; pairs = pairs[2:] {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: pairs[0], RawValue: []byte(pairs[1])})
	}
	return m
}

// Context implements grpc.ServerStream.
func (p *passing) Context() context.Context { return p.ctx }

// Recv implements extprocv3.ExternalProcessor_ProcessServer.
func (p *passing) Recv() (*extprocv3.ProcessingRequest, error) {
	if p.at == len(p.messages) {
		return nil, io.EOF
	}
	p.at++
	return p.messages[p.at-1], nil
}

// Send implements extprocv3.ExternalProcessor_ProcessServer.
func (p *passing) Send(*extprocv3.ProcessingResponse) error { return nil }
