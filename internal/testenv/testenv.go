// Package testenv runs a whole warmpath with a real Envoy for a test, silently
// unless the test fails.
package testenv

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/envoybin"
	"github.com/warmpath/warmpath/internal/stack"
)

// mainVariable makes a test binary that calls [Main] behave as the program.
const mainVariable = "WARMPATH_TEST_RUNS_MAIN"

// Main is for TestMain of the program's own package: it runs the program instead
// of the tests when this test binary was started as warmpath by [Start]. So the
// race detector watches the real program, in a process that can be killed.
func Main(program func()) {
	if os.Getenv(mainVariable) != "" {
		program()
	}
}

// Start starts a stack of the options, with this test binary as warmpath, and
// stops it when the test ends. A process that ends badly or reports a data race
// fails the test.
//
// Envoy waits longer for warmpath than it is shipped with: the race detector and
// a busy machine make it slow, and then Envoy would choose by itself, as it
// should, and every test of where a request goes would be one of how busy the
// machine is.
func Start(t *testing.T, o stack.Options) *stack.Stack {
	t.Helper()
	patient := InOrder(
		Replace(t, "message_timeout: 0.25s", "message_timeout: 5s"),
		Replace(t, "    - timeout: 0.3s\n", "    - timeout: 5s\n"), // of the health check
	)
	if o.Bootstrap != nil {
		patient = InOrder(patient, o.Bootstrap)
	}
	o.Bootstrap = patient
	return StartAsShipped(t, o)
}

// StartAsShipped is [Start] with the timeouts as they are shipped, for tests of
// what happens when warmpath is slow.
func StartAsShipped(t *testing.T, o stack.Options) *stack.Stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o.Dir = t.TempDir()
	o.Envoy = Envoy(t)
	o.Warmpath, o.WarmpathEnv = []string{os.Args[0]}, append(o.WarmpathEnv, mainVariable+"=1")
	s, err := stack.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if strings.Contains(s.Warmpath.Output(), "DATA RACE") {
			t.Error("warmpath reported a data race")
		}
		if t.Failed() {
			t.Logf("warmpath printed:\n%s", s.Warmpath.Output())
			if s.Envoy != nil {
				t.Logf("Envoy printed:\n%s", s.Envoy.Output())
			}
		}
	})
	return s
}

// Envoy returns the path of a usable Envoy binary. Without one the test fails:
// a suite that skips its main tests proves nothing.
func Envoy(t *testing.T) string {
	t.Helper()
	root, err := envoybin.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	path, _, err := envoybin.Find(t.Context(), envoybin.PlacesFrom(os.Getenv, root))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Replace returns a change of the Envoy configuration that replaces one text,
// which must occur exactly once.
func Replace(t *testing.T, old, replacement string) func([]byte) ([]byte, error) {
	return func(config []byte) ([]byte, error) {
		if n := bytes.Count(config, []byte(old)); n != 1 {
			t.Errorf("Envoy's configuration contains %q %d times, want once", old, n)
		}
		return bytes.Replace(config, []byte(old), []byte(replacement), 1), nil
	}
}

// InOrder makes one change of several.
func InOrder(changes ...func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(config []byte) (_ []byte, err error) {
		for _, change := range changes {
			if config, err = change(config); err != nil {
				return nil, err
			}
		}
		return config, nil
	}
}
