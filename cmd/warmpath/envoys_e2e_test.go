package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// balancer passes connections on to where new ones are to go, as one does that
// stands in front of several Envoys.
type balancer struct {
	listener net.Listener
	target   atomic.Value // string: host and port
	wg       sync.WaitGroup
}

func startBalancer(t *testing.T, s *stack.Stack) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{listener: listener}
	b.turnTo(s)
	b.wg.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			b.wg.Go(func() { b.pass(from) })
		}
	})
	t.Cleanup(b.wg.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	return b
}

// turnTo sends new connections to the Envoy of a stack.
func (b *balancer) turnTo(s *stack.Stack) { b.target.Store(strings.TrimPrefix(s.URL, "http://")) }

func (b *balancer) url() string { return "http://" + b.listener.Addr().String() }

func (b *balancer) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", b.target.Load().(string))
	if err != nil {
		return
	}
	defer to.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0])
			_ = way[1].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}

// An Envoy is replaced by another one behind a balancer while requests run: it is
// failed for the balancer's health check, finishes what it has, and is ended.
func TestEnvoyReplacedByAnother(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(1000)})
	before := goroutines(t, s)
	balancer := startBalancer(t, s)
	front := *s
	front.URL = balancer.url()
	l := startSteadyLoad(t, &front)
	l.more(t, 20)

	next, err := s.AnotherEnvoy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := next.Envoy.Stop(10 * time.Second); err != nil {
			t.Error(err)
		}
	}()
	l.underway(t)
	for _, command := range []string{"/healthcheck/fail", "/healthcheck/ok", "/healthcheck/fail"} {
		if err := s.EnvoyCommand(t.Context(), command); err != nil {
			t.Fatal(err)
		}
		_, err := s.EnvoyAdmin(t.Context(), "/ready")
		if ready := err == nil; ready != (command == "/healthcheck/ok") {
			t.Errorf("after %s a balancer finds the old Envoy ready: %v (%v)", command, ready, err)
		}
	}
	balancer.turnTo(next)
	if err := s.Await(t.Context(), "the old Envoy's connections to end", func() error {
		n, err := s.EnvoyCounter(t.Context(), "http.llm.downstream_cx_active")
		if err == nil && n > 0 {
			err = fmt.Errorf("%d are open", n)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	passed := unsteered(t, s) - l.missed
	if err := s.Envoy.Stop(10 * time.Second); err != nil {
		t.Error(err)
	}
	now := *next
	l.s, l.missed, l.calmMissed = &now, 0, 0
	l.more(t, 30)
	l.end()
	if passed += unsteered(t, next); passed > 0 {
		t.Errorf("Envoys sent on %d requests by themselves", passed)
	}
	if n := metric(t, next, "warmpath_xds_envoys"); n != 1 {
		t.Errorf("%v Envoys are connected, want the new one alone", n)
	}
	l.settled(t, before, nil)
}

// A hot restart hands the listener over to the next Envoy. Nobody is refused, and
// what the old one serves it finishes.
func TestEnvoyRestartedHot(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(1000), HotRestart: true})
	before := goroutines(t, s)
	l := startSteadyLoad(t, s)
	l.underway(t)
	old := s.Envoy
	if err := s.StartEnvoy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "the old Envoy to end", func() error {
		if !old.Ended() {
			return errors.New("it runs")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	l.more(t, 30)
	if n := metric(t, s, "warmpath_xds_envoys"); n != 1 {
		t.Errorf("%v Envoys are connected, want the new one alone", n)
	}
	l.settled(t, before, nil)
}
