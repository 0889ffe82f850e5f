package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/cpu"
	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/internal/stack"
)

// binaries are the programs that are measured.
type binaries struct {
	envoy, warmpath, noop string
	peers                 string // the Python interpreter that has their packages
}

// endpoints is the size of the pool.
const endpoints = 7

// prefixLength is that of the strategy PREFIX_AWARE here.
const prefixLength = 4096

// system is everything that runs: all arms at once. Those that are not measured
// just now have nothing to do.
type system struct {
	binaries binaries
	dir      string
	upstream *upstream
	envoy    *stack.Process
	admin    string // Envoy's
	arms     []*running
}

// running is an arm with the processes behind it.
type running struct {
	place
	router *stack.Process // nil if Envoy decides alone
	sender *load.Wire
}

// start starts everything and waits until every arm answers. dir is for files. On
// an error nothing is left running.
func start(ctx context.Context, b binaries, dir string, arms []arm, connections int) (*system, error) {
	s := &system{binaries: b, dir: dir}
	if err := s.start(ctx, arms, connections); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *system) start(ctx context.Context, arms []arm, connections int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if s.upstream, err = startUpstream(endpoints); err != nil {
		return err
	}
	var places []place
	for _, a := range arms {
		r := &running{place: place{arm: a}}
		if r.listener, err = freeAddress(); err != nil {
			return err
		}
		s.arms = append(s.arms, r)
		if err := s.startRouter(ctx, r); err != nil {
			return err
		}
		r.sender = load.NewWire(r.listener, connections)
		if r.arm.router != peer {
			places = append(places, r.place)
		}
	}
	if err := s.startEnvoy(ctx, places); err != nil {
		return err
	}
	for _, r := range s.arms {
		if err := s.envoy.Await(ctx, func() error { return s.answers(ctx, r) }); err != nil {
			return fmt.Errorf("arm %s: %w", r.name, err)
		}
	}
	return nil
}

func freeAddress() (string, error) {
	port, err := stack.FreePort("127.0.0.1")
	return fmt.Sprintf("127.0.0.1:%d", port), err
}

func (s *system) startRouter(ctx context.Context, r *running) (err error) {
	if r.arm.router == peer {
		return s.startPeer(r)
	}
	if r.extProc, err = freeAddress(); err != nil || r.arm.router == nothing {
		return err
	}
	if r.arm.router != warmpath {
		r.router, err = stack.StartProcess(r.name, nil, s.binaries.noop, "-listen", r.extProc,
			"-endpoints", strings.Join(s.upstream.addresses, ","), "-body="+strconv.FormatBool(r.arm.router == noop), "-lean="+strconv.FormatBool(r.arm.lean))
		return err
	}
	return s.startWarmpath(ctx, r)
}

func (s *system) startWarmpath(ctx context.Context, r *running) error {
	var config strings.Builder
	admin, err := freeAddress()
	if err != nil {
		return err
	}
	if r.silent {
		admin = ""
		config.WriteString("inspection: {share: 0}\n")
	}
	fmt.Fprintf(&config, "listen: {extProc: %q, xds: \"\", admin: %q}\n", r.extProc, admin)
	length := r.length
	if length == "" {
		length = strconv.Itoa(prefixLength)
	}
	fmt.Fprintf(&config, "routingConfig:\n  routingStrategy: %s\n  prefixAwareRoutingConfig: {prefixLength: %s}\n", r.strategy, length)
	config.WriteString("membership:\n  static:\n")
	for _, address := range s.upstream.addresses {
		fmt.Fprintf(&config, "  - {address: %q}\n", address)
	}
	path := filepath.Join(s.dir, r.name+".yaml")
	if err := os.WriteFile(path, []byte(config.String()), 0o600); err != nil {
		return err
	}
	if r.router, err = stack.StartProcess(r.name, nil, s.binaries.warmpath, "serve", path); err != nil {
		return err
	}
	if admin == "" {
		return nil // Envoy asks it, and answers waits for that
	}
	return r.router.Await(ctx, func() error {
		_, err := get(ctx, "http://"+admin+"/readyz")
		return err
	})
}

func (s *system) startEnvoy(ctx context.Context, places []place) (err error) {
	if s.admin, err = freeAddress(); err != nil {
		return err
	}
	config, err := bootstrap(s.admin, places, s.upstream.addresses)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, "envoy.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return err
	}
	s.envoy, err = stack.StartProcess("envoy", nil, s.binaries.envoy, "-c", path, "--disable-hot-restart", "--concurrency", "2", "-l", "warning")
	if err != nil {
		return err
	}
	return s.envoy.Await(ctx, func() error {
		_, err := get(ctx, "http://"+s.admin+"/ready")
		return err
	})
}

// answers tells why an arm does not serve yet, through its router.
func (s *system) answers(ctx context.Context, r *running) error {
	if r.asked() {
		healthy, err := s.stat(ctx, "cluster."+r.routerName()+".membership_healthy")
		if err != nil {
			return err
		}
		if healthy != 1 {
			return errors.New("its router is not yet healthy to Envoy")
		}
	}
	probe, err := (load.Kind{API: load.Chat, Model: model}).Sized(256, 1, 1)
	if err != nil {
		return err
	}
	if o := r.sender.Send(ctx, &probe[0], time.Now()); o.Err != "" {
		return errors.New(o.Err)
	}
	return nil
}

// passedOver is how many of an arm's requests Envoy served without its router,
// because that failed or was too slow. There must be none: they are faster.
func (s *system) passedOver(ctx context.Context, r *running) (int, error) {
	sum := 0
	for _, name := range []string{"failure_mode_allowed", "message_timeouts", "streams_failed"} {
		n, err := s.stat(ctx, "http."+r.name+".ext_proc."+name)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// asked tells whether Envoy asks a router.
func (r *running) asked() bool { return r.arm.router != nothing && r.arm.router != peer }

// timesAsked is how many streams Envoy has opened to an arm's router, one a request.
func (s *system) timesAsked(ctx context.Context, r *running) (int, error) {
	return s.stat(ctx, "http."+r.name+".ext_proc.streams_started")
}

// stat reads a counter or gauge of Envoy's.
func (s *system) stat(ctx context.Context, name string) (int, error) {
	text, err := get(ctx, "http://"+s.admin+"/stats?filter=^"+regexp.QuoteMeta(name)+"$")
	if err != nil {
		return 0, err
	}
	_, value, ok := strings.Cut(strings.TrimSpace(text), ": ")
	if !ok {
		return 0, fmt.Errorf("no statistic %s in Envoy", name)
	}
	return strconv.Atoi(value)
}

// spent is processor time.
type spent struct{ envoy, router, client time.Duration }

// spentSoFar is the processor time that has been used for an arm and the others:
// take the difference of two.
func (s *system) spentSoFar(r *running) (t spent, err error) {
	if t.envoy, err = cpu.Used(s.envoy.PID()); err != nil {
		return t, err
	}
	if r.router != nil {
		if t.router, err = cpu.Used(r.router.PID()); err != nil {
			return t, err
		}
	}
	t.client, err = cpu.Used(os.Getpid())
	return t, err
}

// close stops everything. It returns what went wrong in it.
func (s *system) close() error {
	var errs []error
	stop := func(p *stack.Process) {
		if p != nil && p.Ended() {
			errs = append(errs, fmt.Errorf("a process has ended by itself: %s", p.Output()))
		} else if p != nil {
			errs = append(errs, p.Stop(15*time.Second))
		}
	}
	for _, r := range s.arms {
		if r.sender != nil {
			r.sender.Close()
		}
	}
	stop(s.envoy)
	for _, r := range s.arms {
		stop(r.router)
	}
	if s.upstream != nil {
		errs = append(errs, s.upstream.close())
	}
	return errors.Join(errs...)
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s: %.200s", url, response.Status, body)
	}
	return string(body), nil
}
