package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/testenv"
)

// standsIn makes the test binary behave as a llama-server.
const standsIn = "REALENGINE_TEST_STANDS_IN"

func TestMain(m *testing.M) {
	if os.Getenv(standsIn) != "" {
		if err := standIn(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// standIn serves a simulated replica where a llama-server would, with a cache for all
// prefixes: where each has its home differs from run to run.
func standIn(args []string) error {
	if slices.Equal(args, []string{"--version"}) {
		fmt.Println("version: simulated")
		return nil
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	after := func(flag string) string { return args[slices.Index(args, flag)+1] }
	if model, err := os.ReadFile(after("-m")); err != nil || !bytes.HasPrefix(model, []byte("GGUF")) {
		return fmt.Errorf("the model is none (%w)", err)
	}
	fleet, err := replica.Listen([]string{after("--host") + ":" + after("--port")}, replica.Params{Engine: engine.Params{
		StepTime: time.Millisecond, PrefillToken: 200 * time.Microsecond, FrontEnd: time.Millisecond,
		StepTokens: 8192, MaxSequences: slots, BlockTokens: 16, KVTokens: 100_000,
	}})
	if err != nil {
		return err
	}
	<-end
	return fleet.Close()
}

// measureBriefly runs the small form with a llama-server.
func measureBriefly(t *testing.T, llamaServer string, addresses []string) report {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "warmpath")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/warmpath").CombinedOutput(); err != nil {
		t.Fatalf("build warmpath: %v\n%s", err, out)
	}
	o, err := parse([]string{"-short", "-warmpath", binary, "-envoy", testenv.Envoy(t), "-llama-server", llamaServer}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	o.addresses = addresses
	progress := new(bytes.Buffer)
	r, err := makeReport(t.Context(), o, progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	t.Log(r.markdown())
	return r
}

// check fails on what has to be so with every engine: no request fails, prefixes stay
// where they are, what warmpath reads of the answers and of the engines' metrics is what
// the client was told, and a burst stays on its home without a bound and leaves it with one.
func check(t *testing.T, r report) {
	t.Helper()
	for _, c := range r.Criteria[:2] { // the third is of times
		if !c.Kept {
			t.Errorf("%s: %s", c.What, c)
		}
	}
	for name, told := range map[string]float64{"of the answers": r.Told.Answers, "of the engines' metrics": r.Told.Metrics} {
		if math.Abs(told-r.Warmpath.CachedTokens) > 0.002 {
			t.Errorf("warmpath has %.4f cached tokens %s, the client %.4f", told, name, r.Warmpath.CachedTokens)
		}
	}
	if r.RoundRobin.WarmRequests > r.Warmpath.WarmRequests-0.1 {
		t.Errorf("%.2f of the requests are warm with round robin, %.2f with warmpath", r.RoundRobin.WarmRequests, r.Warmpath.WarmRequests)
	}
	bounded, free := r.Bursts[1], r.Bursts[2]
	if len(free.Shares) != 1 || len(bounded.Shares) != replicas {
		t.Errorf("without a bound %d replicas served the burst, with one %d: want 1 and %d", len(free.Shares), len(bounded.Shares), replicas)
	}
}

// The program does with simulated engines what it does with real ones.
func TestWithSimulatedEngines(t *testing.T) {
	t.Setenv(standsIn, "1")
	first := netip.AddrFrom4([4]byte{127, byte(128 + rand.IntN(64)), byte(rand.IntN(256)), 1})
	r := measureBriefly(t, os.Args[0], replica.Addresses(netip.AddrPortFrom(first, 18100), replicas))
	if !strings.HasSuffix(r.Engine, ", simulated") {
		t.Errorf("engine %q", r.Engine)
	}
	check(t, r)
}
