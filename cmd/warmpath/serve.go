package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/health"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/certificate"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/gossip"
	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/live/web"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/modelserver"
	"github.com/warmpath/warmpath/internal/recording"
	"github.com/warmpath/warmpath/internal/telemetry"
	"github.com/warmpath/warmpath/xds"
)

// shutdownGrace is how long requests that have begun may be decided and counted
// after a signal. Responses are not cut when it is over: Envoy goes on with them
// without us. It is short, because nobody decides until a successor listens.
const shutdownGrace = 2 * time.Second

// noticeTime is how long requests are still served after health checks are told
// that this process ends: a little more than the interval at which the shipped
// Envoy configuration asks.
const noticeTime = 600 * time.Millisecond

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

	loads   *load.Tracker
	pools   []*pool              // the default pool first
	scraper *modelserver.Scraper // nil when engines' metrics are not read
	extproc *extproc.Server
	xds     *xds.Server // nil without a control plane
	health  *health.Server
	status  *status
	// gossip is nil when nothing is told to other routers; routers is how many the
	// configuration says there are.
	gossip  *gossip.Node
	routers atomic.Int64
	// recorder is nil when nothing is recorded.
	recorder *recording.Recorder
	// salt is of the hashes that stand for prefixes in metrics: the recording's, if it
	// has one.
	salt recording.Salt
	// live is what operators look at; effective the configuration in use.
	live      *live.Store
	page      *web.Server // nil without an admin listener
	effective atomic.Pointer[effective]

	listeners    struct{ extProc, xds, admin net.Listener }
	certificates struct{ extProc, xds, admin *certificate.Source } // nil without TLS
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
	p.routers.Store(int64(c.Routers))
	p.effective.Store(&effective{c, 1})
	p.live, p.salt = live.New(time.Now()), recording.NewSalt()
	p.log = telemetry.NewLogger(stderr, string(c.Log.Format), p.level)
	p.loads = load.NewTracker()
	p.metrics = telemetry.NewMetrics(p.loads)
	p.metrics.ConfigGeneration.Set(1)
	observer, err := p.observer(ctx)
	if err != nil {
		return nil, err
	}
	p.status = newStatus(p)
	p.health = health.NewServer()
	p.setServing(false)
	p.scraper = p.newScraper()
	if err := p.newPools(p.loads); err != nil {
		return nil, err
	}
	if err := p.newRecorder(); err != nil {
		return nil, err
	}
	s, err := p.settings(c, 1)
	if err != nil {
		return nil, err
	}
	pools, err := p.served(c)
	if err != nil {
		return nil, usageError{err}
	}
	p.extproc = extproc.NewForPools(pools, s, learning{observer, p}, rand.Uint64)
	p.metrics.CountRefused(p.extproc.Refused)
	p.metrics.CountForgotten(p.forgotten)
	if err := p.newControlPlane(); err != nil {
		return nil, err
	}
	if err := p.openCertificates(); err != nil {
		return nil, err
	}
	if err := p.listen(ctx); err != nil {
		return nil, err
	}
	if err := p.startGossip(); err != nil {
		p.closeListeners()
		return nil, err
	}
	return p, nil
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
	if p.config.Listen.Admin == "" {
		return observer, nil
	}
	return watched{observer, p.live}, nil
}

func (p *program) newControlPlane() (err error) {
	if p.config.Listen.XDS == "" {
		return nil
	}
	for _, kind := range xds.Types() {
		p.metrics.Nacks.WithLabelValues(kind) // or the first one would not be an increase
	}
	p.xds = xds.New(xds.Observer{
		OnConnect: func(node string) {
			p.metrics.Envoys.Inc()
			p.log.Info("Envoy connected to the control plane", "node", node)
		},
		OnDisconnect: func(node string) {
			p.metrics.Envoys.Dec()
			p.log.Info("Envoy left the control plane", "node", node)
		},
		OnSpared: p.spared,
		OnNack: func(n xds.Nack) {
			p.metrics.Nacks.WithLabelValues(n.TypeURL).Inc()
			p.log.Error("Envoy refused a resource and keeps what it has", "node", n.Node, "type", n.TypeURL, "detail", n.Detail)
		},
	})
	for _, one := range p.pools {
		c := one.config.Cluster
		if one.envoy, err = p.xds.Add(xds.Options{
			Name: c.Name, ConnectTimeout: c.ConnectTimeout, MaxRequestsPerConnection: c.MaxRequestsPerConnection,
		}); err != nil {
			return err
		}
	}
	return nil
}

// spared notes that an Envoy has a pool whose members are not known here.
func (p *program) spared(cluster string) {
	for _, one := range p.pools {
		if one.config.Cluster.Name == cluster {
			one.status.isSpared()
			one.changed()
		}
	}
}

// ballast is memory that is never touched, and so never taken. The garbage
// collector lets the heap grow by growth percent of what lives: with it that is
// 32 MiB at least, instead of 4, and with a few requests in flight it runs an eighth
// as often. With thousands of them it is the stacks that live, and the heap grows by
// half of them instead of by as much again: so an open response takes less than 20 KiB.
const (
	ballast = 64 << 20
	growth  = 50
)

// run serves until ctx ends, then lets running responses finish.
func (p *program) run(ctx context.Context) error {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // with GOMEMLIMIT it would count against that
		untouched := make([]byte, ballast)
		defer runtime.KeepAlive(untouched)
		if set := debug.SetGCPercent(growth); set != 100 {
			debug.SetGCPercent(set) // GOGC says otherwise
		}
	}
	p.log.Info("warmpath starts", "version", version(), "config", p.path,
		"extProc", address(p.listeners.extProc), "xds", address(p.listeners.xds), "admin", address(p.listeners.admin),
		"strategy", p.config.RoutingConfig.RoutingStrategy)
	p.warnOfExposure()
	if p.recorder != nil {
		p.recorder.Start()
	}
	all, ctx := errgroup.WithContext(ctx)
	work, ctx := errgroup.WithContext(ctx)
	for _, one := range p.pools {
		one.run(ctx, work)
	}
	p.scrape(ctx, work)
	work.Go(func() error { return ended(p.watchConfig(ctx)) })
	work.Go(func() error {
		p.audit(ctx)
		return nil
	})
	if p.gossip != nil {
		work.Go(func() error { return p.gossip.Run(ctx) })
	}
	p.followCertificates(ctx, work)
	p.serveExtProc(ctx, work)
	p.serveXDS(ctx, work)
	admin := p.adminServer()
	all.Go(func() error { return p.serveAdmin(admin) })
	all.Go(func() error {
		defer stopAdmin(ctx, admin) // last, so that the end can be watched
		return work.Wait()
	})
	err := all.Wait()
	p.stopRecording()
	if p.traces != nil {
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := p.traces(flush); err != nil {
			p.log.Warn("last traces were not exported", "error", err)
		}
	}
	p.log.Info("warmpath ends")
	return err
}

// ended drops the error of a context that ended as it should.
func ended(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
