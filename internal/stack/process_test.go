package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roleVariable makes this test binary behave as a program to be started.
const roleVariable = "STACK_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play is the program: it says that it is ready, and then behaves as its role.
func play(role string) int {
	switch role {
	case "fail":
		_, _ = io.WriteString(os.Stderr, "no luck today\n")
		return 3
	case "chatter":
		line := strings.Repeat("x", 1023) + "\n"
		for range 3 * bufferLimit / len(line) {
			_, _ = io.WriteString(os.Stdout, line)
		}
		_, _ = io.WriteString(os.Stdout, "the last words\n")
		return 0
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	_, _ = fmt.Println("ready")
	for range terminated {
		if role == "obey" {
			return 0
		}
	}
	return 0
}

func startRole(t *testing.T, role string) *Process {
	t.Helper()
	p, err := StartProcess(role, []string{roleVariable + "=" + role}, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// printed returns a condition: the process has printed the text.
func printed(p *Process, text string) func() error {
	return func() error {
		if !strings.Contains(p.Output(), text) {
			return fmt.Errorf("%q was not printed", text)
		}
		return nil
	}
}

// within is a context for what should take no time.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestStopAsks(t *testing.T) {
	p := startRole(t, "obey")
	if err := p.Await(within(t, 10*time.Second), printed(p, "ready")); err != nil {
		t.Fatal(err)
	}
	if p.Ended() || p.PID() == os.Getpid() {
		t.Errorf("ended %v, pid %d", p.Ended(), p.PID())
	}
	if err := p.Stop(10 * time.Second); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if !p.Ended() {
		t.Error("it has not ended")
	}
	if err := p.Stop(time.Second); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestStopKillsInTheEnd(t *testing.T) {
	p := startRole(t, "ignore")
	if err := p.Await(within(t, 10*time.Second), printed(p, "ready")); err != nil {
		t.Fatal(err)
	}
	err := p.Stop(50 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "ignore did not end within 50ms") {
		t.Errorf("Stop: %v, want a word about the kill", err)
	}
	if !p.Ended() {
		t.Error("it has not ended")
	}
}

func TestKill(t *testing.T) {
	p := startRole(t, "ignore")
	p.Kill()
	p.Kill() // of a process that has ended
	if !p.Ended() || p.err == nil {
		t.Errorf("ended %v with %v, want an error", p.Ended(), p.err)
	}
}

func TestAwaitGivesUp(t *testing.T) {
	never := func() error { return errors.New("not yet") }

	p := startRole(t, "fail")
	err := p.Await(within(t, 10*time.Second), never)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no luck today") {
		t.Errorf("a program that failed: %v, want its status and its words", err)
	}

	p = startRole(t, "obey")
	err = p.Await(within(t, 50*time.Millisecond), never)
	if err == nil || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("a program that is not ready: %v, want the last reason", err)
	}
}

func TestStartFails(t *testing.T) {
	if _, err := StartProcess("nothing", nil, "/does/not/exist"); err == nil || !strings.Contains(err.Error(), "start nothing") {
		t.Errorf("error %v, want what was started", err)
	}
}

// Of a long output the end is kept: there stands what went wrong.
func TestOutputKeepsTheEnd(t *testing.T) {
	p := startRole(t, "chatter")
	<-p.done
	if out := p.Output(); len(out) != bufferLimit || !strings.HasSuffix(out, "the last words\n") {
		t.Errorf("%d bytes are kept, ending in %q; want the last %d", len(out), out[max(0, len(out)-20):], bufferLimit)
	}
}

func TestFreePort(t *testing.T) {
	hosts := []string{"127.0.0.1", "127.0.0.2"}
	port, err := FreePort(hosts...)
	if err != nil {
		t.Fatal(err)
	}
	if port < firstPort || port >= lastPort {
		t.Errorf("port %d, want %d..%d", port, firstPort, lastPort-1)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(hosts[1], fmt.Sprint(port)))
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	defer l.Close()
	if err := listenOn(port, hosts); err == nil {
		t.Errorf("port %d counts as free, and %s is in use", port, l.Addr())
	}
	if err := listenOn(port, hosts[:1]); err != nil {
		t.Errorf("port %d on %s: %v", port, hosts[0], err)
	}
	if _, err := FreePort("192.0.2.1"); err == nil || !strings.Contains(err.Error(), "100 tries") {
		t.Errorf("an address of another machine: %v", err)
	}
}
