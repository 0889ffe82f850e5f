package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/admin"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/rollout"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/telemetry"
	"github.com/warmpath/warmpath/xds"
)

// shutdownGrace is how long running responses may go on being counted after a
// signal. They are not cut when it is over: Envoy fails open.
const shutdownGrace = 10 * time.Second

func serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("warmpath serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, "usage: warmpath serve CONFIG\n\nRuns until SIGINT or SIGTERM. docs/CONFIG.md describes CONFIG.\n")
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return usageError{err}
	case flags.NArg() != 1:
		return usageError{fmt.Errorf("serve: want one configuration file, got %d arguments", flags.NArg())}
	}
	p, err := newProgram(ctx, flags.Arg(0), stderr)
	if err != nil {
		return err
	}
	return p.run(ctx)
}

// program is one running warmpath: configuration in, three listeners out.
type program struct {
	path    string
	data    []byte // what was read from path
	config  config.Config
	level   *slog.LevelVar
	log     *slog.Logger
	metrics *telemetry.Metrics
	traces  func(context.Context) error // shuts the exporter down

	router  *route.Router
	extproc *extproc.Server
	xds     *xds.Server // nil without a control plane
	health  *health.Server
	status  *status

	listeners struct{ extProc, xds, admin net.Listener }
}

func newProgram(ctx context.Context, path string, stderr io.Writer) (*program, error) {
	data, err := watch.ReadFile(path)
	if err != nil {
		return nil, usageError{err}
	}
	c, problems := config.Decode(path, data)
	if err := problems.Err(); err != nil {
		return nil, usageError{err}
	}
	p := &program{path: path, data: data, config: c, level: new(slog.LevelVar)}
	p.level.Set(logLevel(c.Log.Level))
	p.log = telemetry.NewLogger(stderr, string(c.Log.Format), p.level)
	p.router = route.NewRouter(policy(c))
	p.metrics = telemetry.NewMetrics(p.router.Loads())
	p.metrics.ConfigGeneration.Set(1)
	observer, err := p.observer(ctx)
	if err != nil {
		return nil, err
	}
	p.extproc = extproc.New(p.router, settings(c), observer, rand.Uint64)
	p.status = newStatus(p)
	p.health = health.NewServer()
	p.setServing(false)
	if err := p.newControlPlane(); err != nil {
		return nil, err
	}
	return p, p.listen()
}

func (p *program) observer(ctx context.Context) (extproc.Observer, error) {
	var provider trace.TracerProvider
	if t := p.config.Tracing; t.OTLPEndpoint != "" {
		exporting, err := telemetry.NewTracerProvider(ctx, t.OTLPEndpoint, t.Insecure, t.SampleRatio, version())
		if err != nil {
			return nil, err
		}
		provider, p.traces = exporting, exporting.Shutdown
	}
	observer := telemetry.NewObserver(p.metrics, provider)
	observer.Log = p.log
	return observer, nil
}

func (p *program) newControlPlane() (err error) {
	if p.config.Listen.XDS == "" {
		return nil
	}
	p.xds, err = xds.New(xds.Options{
		Name:           p.config.Cluster.Name,
		ConnectTimeout: p.config.Cluster.ConnectTimeout,
	}, xds.Observer{
		OnConnect: func(node string) {
			p.metrics.Envoys.Inc()
			p.log.Info("Envoy connected to the control plane", "node", node)
		},
		OnDisconnect: func(node string) {
			p.metrics.Envoys.Dec()
			p.log.Info("Envoy left the control plane", "node", node)
		},
		OnNack: func(n xds.Nack) {
			p.metrics.Nacks.WithLabelValues(n.TypeURL).Inc()
			p.log.Error("Envoy refused a resource and keeps what it has", "node", n.Node, "type", n.TypeURL, "detail", n.Detail)
		},
	})
	return err
}

// listen opens all listeners before anything is served, so that a taken port
// is an error at the start.
func (p *program) listen() error {
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
		listener, err := net.Listen("tcp", l.address)
		if err != nil {
			return fmt.Errorf("listen.%s: %w", l.what, err)
		}
		*l.listener = listener
	}
	return nil
}

// run serves until ctx ends, then lets running responses finish.
func (p *program) run(ctx context.Context) error {
	p.log.Info("warmpath starts", "version", version(), "config", p.path,
		"extProc", address(p.listeners.extProc), "xds", address(p.listeners.xds), "admin", address(p.listeners.admin),
		"strategy", p.config.RoutingConfig.RoutingStrategy)
	group, ctx := errgroup.WithContext(ctx)
	updates := make(chan fleet.Set)
	group.Go(func() error { return p.follow(ctx, updates) })
	group.Go(func() error {
		p.newRollout().Run(ctx, updates)
		return nil
	})
	group.Go(func() error { return ended(p.watchConfig(ctx)) })
	p.serveExtProc(ctx, group)
	p.serveXDS(ctx, group)
	p.serveAdmin(ctx, group)
	err := group.Wait()
	if p.traces != nil {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := p.traces(flush); err != nil {
			p.log.Warn("last traces were not exported", "error", err)
		}
	}
	p.log.Info("warmpath ends", "outstanding", p.status.outstanding())
	return err
}

// ended drops the error of a context that ended as it should.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func address(l net.Listener) string {
	if l == nil {
		return "off"
	}
	return l.Addr().String()
}

func (p *program) serveExtProc(ctx context.Context, group *errgroup.Group) {
	// A message holds a whole buffered body and the headers' share of it.
	const slack = 1 << 20
	server := newGRPCServer(grpc.MaxRecvMsgSize(int(p.config.Limits.RequestBodyBytes) + slack))
	extprocv3.RegisterExternalProcessorServer(server, p.extproc)
	grpc_health_v1.RegisterHealthServer(server, p.health)
	p.serveGRPC(ctx, group, server, p.listeners.extProc, func() { p.setServing(false) })
}

func (p *program) serveXDS(ctx context.Context, group *errgroup.Group) {
	if p.xds == nil {
		return
	}
	server := newGRPCServer()
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
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 500 * time.Millisecond, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
	)...)
}

// serveGRPC serves until ctx ends, calls closing, and gives running streams the
// grace to end by themselves.
func (p *program) serveGRPC(ctx context.Context, group *errgroup.Group, server *grpc.Server, l net.Listener, closing func()) {
	group.Go(func() error { return server.Serve(l) })
	group.Go(func() error {
		<-ctx.Done()
		closing()
		force := time.AfterFunc(shutdownGrace, server.Stop)
		defer force.Stop()
		server.GracefulStop()
		return nil
	})
}

func (p *program) serveAdmin(ctx context.Context, group *errgroup.Group) {
	if p.listeners.admin == nil {
		return
	}
	server := &http.Server{
		Handler:           admin.Handler(p.metrics.Registry(), p.status.ready, p.status.value),
		ReadHeaderTimeout: 5 * time.Second,
	}
	group.Go(func() error {
		if err := server.Serve(p.listeners.admin); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return ended(server.Shutdown(stop))
	})
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

// follow passes each good membership on to the rollout and tells of bad ones.
func (p *program) follow(ctx context.Context, updates chan<- fleet.Set) error {
	source := discovery.New(p.config.Membership, p.path)
	return ended(source.Run(ctx, func(u discovery.Update) {
		p.status.sourced(u)
		if u.Err != nil || len(u.Problems) > 0 {
			p.metrics.MembershipErrors.Inc()
		}
		if u.Err != nil {
			p.log.Error("membership not taken over", "error", u.Err)
			return
		}
		for _, problem := range u.Problems {
			p.log.Error("membership entry left out", "error", problem)
		}
		if len(u.Kept) > 0 {
			p.log.Warn("endpoints keep their earlier entries", "endpoints", u.Kept)
		}
		p.log.Info("membership read", "endpoints", u.Set.Len(), "version", fmt.Sprintf("%016x", u.Set.Version()))
		select {
		case updates <- u.Set:
		case <-ctx.Done():
		}
	}))
}

func (p *program) newRollout() *rollout.Rollout {
	var envoy rollout.ControlPlane
	if p.xds != nil {
		envoy = p.xds
	}
	return rollout.New(rollout.Options{DrainTimeout: p.config.Membership.DrainTimeout}, envoy, members{p}, func(s rollout.Status) {
		p.status.rolledOut(s)
		p.metrics.Leaving.Set(float64(len(s.Draining)))
		p.metrics.Unacknowledged.Set(0)
		if s.Err != nil {
			p.metrics.Unacknowledged.Set(1)
			p.log.Warn("membership published, but not every Envoy uses it yet", "error", s.Err)
		}
	})
}

// members is the router as the rollout sees it.
type members struct{ p *program }

// SetMembership implements rollout.Router.
func (m members) SetMembership(set fleet.Set) {
	m.p.router.SetMembership(set)
	m.p.setServing(true)
	counts := map[fleet.State]int{fleet.Healthy: 0, fleet.Unhealthy: 0, fleet.Draining: 0}
	for i := range set.Len() {
		counts[set.At(i).State]++
	}
	for state, n := range counts {
		m.p.metrics.Endpoints.WithLabelValues(state.String()).Set(float64(n))
	}
}

// Outstanding implements rollout.Router.
func (m members) Outstanding(address string) int64 {
	counter, ok := m.p.router.Loads().Lookup(address)
	if !ok {
		return 0
	}
	return counter.Outstanding()
}

// watchConfig applies changes of the configuration file while serving.
func (p *program) watchConfig(ctx context.Context) error {
	current, generation := p.config, 1
	return config.Watch(ctx, watch.File{Path: p.path}, p.data, func(next config.Config, err error) {
		if err != nil {
			p.metrics.ConfigErrors.Inc()
			p.status.configured(generation, err)
			p.log.Error("configuration not taken over, the last good one stays", "error", err)
			return
		}
		effective, restart := current.Reload(next)
		generation++
		current = effective
		p.router.SetPolicy(policy(effective))
		p.extproc.SetSettings(settings(effective))
		p.level.Set(logLevel(effective.Log.Level))
		p.metrics.ConfigGeneration.Set(float64(generation))
		p.status.configured(generation, nil)
		p.log.Info("configuration taken over", "generation", generation, "strategy", effective.RoutingConfig.RoutingStrategy)
		if len(restart) > 0 {
			p.log.Warn("these changes take effect at a restart", "paths", restart)
		}
	})
}
