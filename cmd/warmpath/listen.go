package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/warmpath/warmpath/internal/admin"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/listen"
	"github.com/warmpath/warmpath/internal/live/web"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/origin"
)

// listen opens all listeners before anything is served, so that a taken port
// is an error at the start. With an error none is left open.
func (p *program) listen(ctx context.Context) error {
	mode := fs.FileMode(p.config.Listen.SocketMode)
	for _, l := range []struct {
		what, address string
		listener      *net.Listener
	}{
		{"extProc", p.config.Listen.ExtProc, &p.listeners.extProc},
		{"xds", p.config.Listen.XDS, &p.listeners.xds},
		{"admin", p.config.Listen.Admin, &p.listeners.admin},
	} {
		if l.address == "" {
			continue
		}
		listener, err := listen.Open(ctx, l.address, mode)
		if err != nil {
			p.closeListeners()
			return fmt.Errorf("listen.%s: %w", l.what, err)
		}
		*l.listener = listener
	}
	return nil
}

// closeListeners closes what listen has opened: a Unix socket would stay behind.
func (p *program) closeListeners() {
	for _, l := range []net.Listener{p.listeners.extProc, p.listeners.xds, p.listeners.admin} {
		if l != nil {
			_ = l.Close()
		}
	}
}

func address(l net.Listener) string {
	switch {
	case l == nil:
		return "off"
	case l.Addr().Network() == "unix":
		return listen.UnixPrefix + l.Addr().String()
	default:
		return l.Addr().String()
	}
}

// connectTimeout is how long a connection may take until it can carry requests,
// its TLS handshake included: those of nobody hold little for a short time.
const connectTimeout = 10 * time.Second

// streamWorkers is how many goroutines serve one short request after the other:
// their stacks have grown already. Streams for which none is free get their own.
const streamWorkers = 64

func (p *program) serveExtProc(ctx context.Context, group *errgroup.Group) {
	// A message holds a whole buffered body and the headers' share of it.
	const slack = 1 << 20
	server := newGRPCServer(
		p.credentials("extProc", p.certificates.extProc),
		grpc.MaxRecvMsgSize(int(p.config.Limits.RequestBodyBytes)+slack),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ForceServerCodecV2(p.extproc.Codec()),
	)
	extprocv3.RegisterExternalProcessorServer(server, p.extproc)
	grpc_health_v1.RegisterHealthServer(server, p.health)
	p.serveGRPC(ctx, group, server, p.listeners.extProc, func() {
		p.health.Shutdown()
		p.log.Info("warmpath stops serving", "outstanding", outstanding(p.loads))
		notice := time.NewTimer(noticeTime)
		defer notice.Stop()
		<-notice.C
	})
}

// outstanding is the sum of all endpoints' loads.
func outstanding(loads *load.Tracker) (sum int64) {
	for _, c := range loads.Snapshot() {
		sum += c.Outstanding
	}
	return sum
}

func (p *program) serveXDS(ctx context.Context, group *errgroup.Group) {
	if p.xds == nil {
		return
	}
	server := newGRPCServer(p.credentials("xds", p.certificates.xds))
	p.xds.Register(server)
	p.serveGRPC(ctx, group, server, p.listeners.xds, p.xds.Close)
}

// newGRPCServer returns a server that gets along with Envoy's keepalive pings.
// By default gRPC takes more than one in five minutes for an attack and closes
// the connection, and with it every request's stream: the responses would go on,
// but not be counted. The server's own pings end the streams of an Envoy that
// has vanished without a word.
func newGRPCServer(options ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options,
		grpc.ConnectionTimeout(connectTimeout),
		grpc.WaitForHandlers(true), // so that the last counts are seen
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 500 * time.Millisecond, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
	)...)
}

// serveGRPC serves until ctx ends, calls closing, and gives running streams the
// grace to end by themselves.
func (p *program) serveGRPC(ctx context.Context, group *errgroup.Group, server *grpc.Server, l net.Listener, closing func()) {
	group.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
			return err
		}
		return nil // stopped before it began
	})
	group.Go(func() error {
		<-ctx.Done()
		closing()
		force := time.AfterFunc(shutdownGrace, server.Stop)
		defer force.Stop()
		server.GracefulStop()
		return nil
	})
}

// adminServer returns the HTTP server for operators, nil without one.
func (p *program) adminServer() *http.Server {
	if p.listeners.admin == nil {
		return nil
	}
	server := &http.Server{
		Handler:           p.adminHandler(),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ConnContext:       web.ConnContext,
	}
	server.RegisterOnShutdown(p.page.Close)
	p.secureAdmin(server)
	return server
}

// adminHandler serves what operators read, the live page and the memberships that are given over
// HTTP.
func (p *program) adminHandler() http.Handler {
	mux := http.NewServeMux()
	options := admin.Options{Gatherer: p.metrics.Registry(), Ready: p.status.ready, Status: p.status.value}
	if !config.Exposed(p.config.Listen.Admin) { // elsewhere it may have a name, by which it is scraped
		options.Guard = origin.ByAddress
	}
	admin.Register(mux, options)
	p.servePage(mux)
	for _, one := range p.pools {
		api, ok := one.source.(*discovery.API)
		switch {
		case !ok:
		case one.name == "":
			api.Register(mux, "/membership")
		default:
			api.Register(mux, "/pools/"+one.name+"/membership")
		}
	}
	return mux
}

// serveAdmin serves operators until the server is shut down.
func (p *program) serveAdmin(server *http.Server) error {
	if server == nil {
		return nil
	}
	var err error
	if server.TLSConfig != nil {
		err = server.ServeTLS(p.listeners.admin, "", "") // the files are in TLSConfig
	} else {
		err = server.Serve(p.listeners.admin)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin: %w", err)
	}
	return nil
}

func stopAdmin(ctx context.Context, server *http.Server) {
	if server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = server.Shutdown(ctx) // whoever still reads then is cut off
}

// tellServing tells health checks that requests are decided, once they are.
func (p *program) tellServing() {
	known := false
	for i, one := range p.pools {
		if i > 0 && !one.status.settled() {
			return
		}
		known = known || one.status.known()
	}
	if known {
		p.setServing(true)
	}
}

// setServing sets what gRPC health checks are told, for the server as a whole
// and for its service.
func (p *program) setServing(serving bool) {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if serving {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	p.health.SetServingStatus("", status)
	p.health.SetServingStatus(extprocv3.ExternalProcessor_ServiceDesc.ServiceName, status)
}
