package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/warmpath/warmpath/internal/route"
)

// dial serves a processor without sockets.
func dial(b *testing.B, s extprocv3.ExternalProcessorServer) extprocv3.ExternalProcessorClient {
	b.Helper()
	listener := bufconn.Listen(1 << 20)
	server := newGRPCServer()
	extprocv3.RegisterExternalProcessorServer(server, s)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///noop",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		<-served
	})
	return extprocv3.NewExternalProcessorClient(conn)
}

// BenchmarkStream is a request's stream from its headers to its end, client and
// gRPC included: the difference between the two is warmpath's own work, without
// what Envoy and the kernel add to both. Its allocations do not depend on how busy
// the machine is.
func BenchmarkStream(b *testing.B) {
	for _, bytes := range []int{4 << 10, 64 << 10, 1 << 20} {
		frame := `{"model":"m","messages":[{"role":"user","content":""}]}`
		body := strings.Replace(frame, `""`, `"`+strings.Repeat("word ", bytes/5)[:bytes-len(frame)]+`"`, 1)
		messages := []*extprocv3.ProcessingRequest{
			requestHeaders(headers(false, ":method", "POST", ":path", "/v1/chat/completions", ":scheme", "http", ":authority", "llm",
				"content-type", "application/json", "content-length", strconv.Itoa(len(body)), "x-request-id", "2a6fa2a6-5a3c-4c5e-9d9b-0d7c1a0e7f11")),
			{Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{Body: []byte(body), EndOfStream: true}}},
			{Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: headers(false, ":status", "200", "content-type", "application/json")}},
		}
		for name, s := range map[string]extprocv3.ExternalProcessorServer{
			"noop": newProcessor(endpoints, true), "warmpath": newWarmpath(b, route.PrefixAware),
		} {
			b.Run(fmt.Sprintf("%dKiB/%s", bytes>>10, name), func(b *testing.B) {
				client := dial(b, s)
				b.ReportAllocs()
				for b.Loop() {
					if err := exchange(b.Context(), client, messages); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func exchange(ctx context.Context, client extprocv3.ExternalProcessorClient, messages []*extprocv3.ProcessingRequest) error {
	stream, err := client.Process(ctx)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := stream.Send(m); err != nil {
			return err
		}
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != io.EOF {
		return fmt.Errorf("the stream ended with %v, want EOF", err)
	}
	return nil
}
