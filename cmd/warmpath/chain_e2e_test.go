package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// echo is another ext_proc server, which passes everything on as it is, in the
// mode in which bodies go through it.
type echo struct {
	extprocv3.UnimplementedExternalProcessorServer
}

// Process implements the ext_proc service.
func (echo) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil
		}
		r := new(extprocv3.ProcessingResponse)
		switch q := m.GetRequest().(type) {
		case *extprocv3.ProcessingRequest_RequestHeaders:
			r.Response = &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: new(extprocv3.HeadersResponse)}
		case *extprocv3.ProcessingRequest_RequestBody:
			r.Response = &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{Response: &extprocv3.CommonResponse{
				BodyMutation: &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_StreamedResponse{
					StreamedResponse: &extprocv3.StreamedBodyResponse{Body: q.RequestBody.GetBody(), EndOfStream: q.RequestBody.GetEndOfStream()},
				}},
			}}}
		case *extprocv3.ProcessingRequest_RequestTrailers:
			r.Response = &extprocv3.ProcessingResponse_RequestTrailers{RequestTrailers: new(extprocv3.TrailersResponse)}
		}
		if err := stream.Send(r); err != nil {
			return nil
		}
	}
}

func startEcho(t *testing.T) net.Addr {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(server, echo{})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr()
}

const (
	ourFilter    = "          - name: warmpath.ext_proc\n"
	routerFilter = "          - name: envoy.filters.http.router\n"
)

// beside puts the other processor's filter in front of a line of Envoy's
// configuration.
func beside(t *testing.T, line string, processor net.Addr) func([]byte) ([]byte, error) {
	host, port, err := net.SplitHostPort(processor.String())
	if err != nil {
		t.Fatal(err)
	}
	return testenv.InOrder(
		testenv.Replace(t, line, `          - name: another.ext_proc
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor
              grpc_service: {envoy_grpc: {cluster_name: another}}
              message_timeout: 5s
              processing_mode: {request_body_mode: FULL_DUPLEX_STREAMED, request_trailer_mode: SEND, response_header_mode: SKIP}
`+line),
		testenv.Replace(t, "  clusters:\n", fmt.Sprintf(`  clusters:
  - name: another
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: another
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]
`, host, port)),
	)
}

// chained is a chain with another processor in which Envoy loses nothing.
type chained struct {
	name string
	// line is what the other processor stands in front of.
	line, mode string
	noRetries  bool
	framings   []framing
	byText     bool
}

// Another processor, through which bodies stream, stands in front of warmpath or
// behind it. Every body arrives whole, once, where it was decided, in the chains
// that docs/RATIONALE.md names: in others Envoy 1.40 loses or repeats bodies.
func TestAnotherProcessorInTheChain(t *testing.T) {
	t.Parallel()
	all := []framing{withLength, chunked, withTrailers}
	for _, tc := range []chained{
		{"behind", routerFilter, "none", false, []framing{withLength, chunked}, true},
		{"behind, without retries", routerFilter, "none", true, all, true},
		{"in front", ourFilter, "buffered alone", false, all, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			config := prefixAware(0)
			if tc.noRetries {
				config.Extra = "retry: {conditions: []}"
			}
			mode := bodyModes[slices.IndexFunc(bodyModes, func(m bodyMode) bool { return m.name == tc.mode })]
			s := testenv.Start(t, stack.Options{
				Replica: fast, Replicas: 4, Config: config,
				Bootstrap: testenv.InOrder(mode.bootstrap(t), beside(t, tc.line, startEcho(t))),
			})
			sent := 0
			for _, major := range []int{1, 2} {
				client := clientOf(t, major)
				for i, size := range []int{30, 5 << 10, 7 << 10, 200 << 10, 1 << 20} {
					for _, f := range tc.framings {
						for range 5 { // what goes wrong depends on timing
							sent++
							tc.serves(t, s, client, cell{major: major, size: size, framing: f}, 10*major+i, fmt.Sprint("request ", sent))
						}
					}
				}
			}
			if n := int(metric(t, s, "warmpath_decisions_total")); n != sent {
				t.Errorf("%d decisions on %d requests", n, sent)
			}
			noMisses(t, s)
			atRest(t, s)
		})
	}
}

// serves sends a request through the chain.
func (tc chained) serves(t *testing.T, s *stack.Stack, client *http.Client, c cell, number int, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	body := c.body(number, c.size)
	r, text, err := exchangeWith(client, c.request(ctx, t, s, body, id))
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %s: %.200s", c, err, r.Status, text)
	}
	got := r.Header.Get("x-replica")
	arrivedOnce(t, s, got, id, body)
	if !tc.byText || !c.knownLength() {
		return
	}
	if home := homesOf(t, s, "/v1/completions", body)[0]; got != home {
		t.Errorf("%s: served by %s, home is %s", c, got, home)
	}
}
