// Command noop is an ext_proc server that decides nothing: what any server must
// cost that gets the same messages from Envoy as warmpath and answers them in the
// same form. The difference to it is what warmpath's own work costs.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/warmpath/warmpath/envoy"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9002", "the `address` to serve on")
	endpoints := flag.String("endpoints", "", "the pool's endpoints, `host:port,...`")
	body := flag.Bool("body", true, "ask for the request's body, as PREFIX_AWARE does")
	lean := flag.Bool("lean", false, "encode answers once, reuse stacks and collect less, as warmpath does")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *listen, strings.Split(*endpoints, ","), *body, *lean); err != nil {
		fmt.Fprintln(os.Stderr, "noop:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, address string, endpoints []string, body, lean bool) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	p := newProcessor(endpoints, body)
	var options []grpc.ServerOption
	if lean {
		untouched := make([]byte, 32<<20) // see ballast in cmd/warmpath/serve.go
		defer runtime.KeepAlive(untouched)
		options = append(options, grpc.NumStreamWorkers(64), grpc.ForceServerCodecV2(newCodec(p)))
	}
	server := newGRPCServer(options...)
	extprocv3.RegisterExternalProcessorServer(server, p)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(listener)
}

// newGRPCServer has the limits of warmpath's own: cmd/warmpath/listen.go.
func newGRPCServer(options ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(envoy.BodyLimit+1<<20),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 500 * time.Millisecond, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
	)...)
}
