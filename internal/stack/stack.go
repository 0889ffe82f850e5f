// Package stack starts a whole warmpath on one machine: simulated replicas in
// this process, warmpath and a real Envoy in processes of their own, on free
// ports of the loopback interface. The demo and the end-to-end tests run on it.
package stack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/envoy"
)

// Options describe a stack. The zero value of a field means its default.
type Options struct {
	// Warmpath is the command that runs warmpath, without its arguments, and
	// WarmpathEnv what is added to its environment.
	Warmpath    []string
	WarmpathEnv []string
	// Envoy is the Envoy binary.
	Envoy string
	// Bootstrap changes the shipped Envoy configuration before it is used.
	Bootstrap func([]byte) ([]byte, error)
	// Between changes where Envoy looks for warmpath, so that something can stand
	// between them. It is called at each start of Envoy.
	Between func(envoy.Addresses) (envoy.Addresses, error)
	// Replicas is the number of replicas; default 7. Replica describes them.
	Replicas int
	Replica  replica.Params
	// Shared are replicas of another stack, which ends them; instead of Replicas.
	Shared *replica.Fleet
	// Servers are the addresses of model servers that run already, which the stack
	// leaves alone; instead of Replicas.
	Servers []string
	// WithoutEnvoy starts none: requests come by another stack's.
	WithoutEnvoy bool
	// PoolCluster is what the pool's cluster is called in Envoy's statistics; default
	// warmpath_pool.
	PoolCluster string
	// HotRestart lets a new Envoy take over from one that runs: see [Stack.StartEnvoy].
	HotRestart bool
	// ReplicaHost is the address of the first replica, which the others follow;
	// default 127.0.0.1.
	ReplicaHost netip.Addr
	// Membership makes the source that has the replicas, and returns its field of
	// the section membership; nil is the watched file.
	Membership func(addresses []string) (field string, err error)
	// Inspect is the share of the responses that is inspected; 0 for the default.
	Inspect float64
	// Config is the configuration to begin with.
	Config Config
	// Started is called when warmpath has been started, before requests are routed.
	Started func(context.Context, *Stack) error
	// Dir is where files are written; it must exist.
	Dir string
}

// Stack is a running warmpath with all that is around it.
type Stack struct {
	// URL is where clients send requests, without a trailing slash.
	URL string
	// Replicas are the model servers; nil with Servers.
	Replicas *replica.Fleet
	// Warmpath and Envoy are the processes.
	Warmpath, Envoy *Process

	options Options
	config  Config
	ports   ports
	// membership is the field of the source.
	membership string
	epoch      int // of hot restarts
}

type ports struct{ listener, envoyAdmin, extProc, xds, admin string }

// Start starts everything and waits until requests are routed. On an error
// nothing is left running.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Replicas == 0 {
		o.Replicas = 7
	}
	if !o.ReplicaHost.IsValid() {
		o.ReplicaHost = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	switch {
	case o.Shared != nil:
		o.Replicas = len(o.Shared.Addresses())
	case o.Servers != nil:
		o.Replicas = len(o.Servers)
	}
	s := &Stack{options: o, config: o.Config}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if err := s.choosePorts(); err != nil {
		return err
	}
	if err := s.startReplicas(); err != nil {
		return err
	}
	if err := s.makeMembership(); err != nil {
		return err
	}
	if err := s.writeConfig(s.config); err != nil {
		return err
	}
	if err := s.StartWarmpath(ctx); err != nil {
		return err
	}
	if s.options.Started != nil {
		if err := s.options.Started(ctx, s); err != nil {
			return err
		}
	}
	if s.options.WithoutEnvoy {
		return s.AwaitRouting(ctx)
	}
	if err := s.StartEnvoy(ctx); err != nil {
		return err
	}
	return s.AwaitRouting(ctx)
}

// makeMembership has a source with all replicas in it.
func (s *Stack) makeMembership() (err error) {
	addresses := s.options.Servers
	if addresses == nil {
		addresses = s.Replicas.Addresses()
	}
	if s.options.Membership != nil {
		s.membership, err = s.options.Membership(addresses)
		return err
	}
	s.membership = "file: " + filepath.Base(s.endpointsPath())
	return s.WriteEndpoints(Endpoints(addresses...))
}

// choosePorts takes an address of the loopback network for the stack alone: what
// is stopped and started again finds its ports free, whatever starts meanwhile.
func (s *Stack) choosePorts() error {
	return s.takePorts(&s.ports.listener, &s.ports.envoyAdmin, &s.ports.extProc, &s.ports.xds, &s.ports.admin)
}

// chooseEnvoyPorts takes others for one more Envoy.
func (s *Stack) chooseEnvoyPorts() error { return s.takePorts(&s.ports.listener, &s.ports.envoyAdmin) }

func (s *Stack) takePorts(addresses ...*string) error {
	host := netip.AddrFrom4([4]byte{127, byte(64 + rand.IntN(64)), byte(rand.IntN(256)), byte(1 + rand.IntN(254))}).String()
	for _, p := range addresses {
		port, err := FreePort(host)
		if err != nil {
			return err
		}
		*p = fmt.Sprintf("%s:%d", host, port)
	}
	s.URL = "http://" + s.ports.listener
	return nil
}

func (s *Stack) startReplicas() (err error) {
	if s.Replicas = s.options.Shared; s.Replicas != nil || s.options.Servers != nil {
		return nil
	}
	var hosts []string
	for _, a := range replica.Addresses(netip.AddrPortFrom(s.options.ReplicaHost, 1), s.options.Replicas) {
		hosts = append(hosts, netip.MustParseAddrPort(a).Addr().String())
	}
	for range 20 {
		var port int
		if port, err = FreePort(hosts...); err != nil {
			return err
		}
		first := netip.AddrPortFrom(s.options.ReplicaHost, uint16(port))
		s.Replicas, err = replica.Listen(replica.Addresses(first, s.options.Replicas), s.options.Replica)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		// A process that is being started may still hold what FreePort tried.
	}
	return err
}

// StartWarmpath starts warmpath, again after it was stopped or killed. It does
// not wait until requests are decided: see [Stack.AwaitRouting].
func (s *Stack) StartWarmpath(ctx context.Context) (err error) {
	command := append(append([]string(nil), s.options.Warmpath...), "serve", s.configPath())
	if s.Warmpath, err = StartProcess("warmpath", s.options.WarmpathEnv, command...); err != nil {
		return err
	}
	return s.Warmpath.Await(ctx, func() error { return expectOK(ctx, "http://"+s.ports.admin+"/healthz") })
}

// AwaitRouting waits until warmpath decides requests.
func (s *Stack) AwaitRouting(ctx context.Context) error {
	return s.Warmpath.Await(ctx, func() error { return expectOK(ctx, "http://"+s.ports.admin+"/readyz") })
}

// Close stops everything. It returns what went wrong in it: a process that
// ended by itself, that had to be killed, or a data race that it reported.
func (s *Stack) Close() error {
	var errs []error
	for _, p := range []*Process{s.Envoy, s.Warmpath} {
		if p == nil {
			continue
		}
		if p.Ended() {
			continue // stopped by whoever uses the stack
		}
		if err := p.Stop(15 * time.Second); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w\n%s", p.name, err, p.Output()))
		}
	}
	if s.Replicas != nil && s.options.Shared == nil {
		errs = append(errs, s.Replicas.Close())
	}
	return errors.Join(errs...)
}
