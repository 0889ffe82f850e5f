package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// component is a part of the program: a package and the packages below it.
type component struct {
	path  string // below the module
	layer layer
	// imports are the other components that it may import, each for a reason.
	// Pure ones may be imported by all and are not listed.
	imports map[string]string
}

type layer string

// The layers. Nothing imports a layer that stands further down, except that
// support may use everything.
const (
	pure    layer = "pure"    // decides; knows no network, file, clock or log
	adapter layer = "adapter" // connects the pure packages to one thing outside
	wiring  layer = "wiring"  // a program: puts adapters together
	support layer = "support" // tests, benchmarks, tools: never in the program
)

var components = []component{
	{"internal/fleet", pure, nil},
	{"internal/endpointslice", pure, nil},
	{"internal/prefix", pure, nil},
	{"internal/placement", pure, nil},
	{"internal/affinity", pure, nil},
	{"internal/load", pure, nil},
	{"internal/route", pure, nil},
	{"internal/trial", pure, nil},
	{"internal/health", pure, nil},
	{"internal/usage", pure, nil},
	{"internal/gossip/merge", pure, nil},
	{"bench/replica/engine", pure, nil},
	{"internal/sim", pure, nil},
	{"internal/advice", pure, nil},

	{"extproc", adapter, nil},
	{"xds", adapter, map[string]string{"envoy": "it sends the cluster of the file that is shipped"}},
	{"envoy", adapter, nil},
	{"internal/admin", adapter, nil},
	{"internal/doctor", adapter, nil},
	{"internal/certificate", adapter, map[string]string{"internal/config": "certificate files are watched as the configuration is, by the same code"}},
	{"internal/config", adapter, nil},
	{"internal/gossip", adapter, map[string]string{"proto": "it sends the messages that are defined there"}},
	{"proto", adapter, nil},
	{"internal/listen", adapter, nil},
	{"internal/origin", adapter, nil},
	{"internal/live", adapter, map[string]string{
		"extproc":         "it implements extproc.Observer",
		"internal/origin": "its page answers to no name of others, as all that operators read",
	}},
	{"internal/health/prober", adapter, nil},
	{"internal/modelserver", adapter, nil},
	{"internal/envoypolicy", adapter, nil},
	{"internal/discovery", adapter, map[string]string{
		"internal/config": "a membership file is read as strictly as a configuration, by the same code",
		"internal/origin": "it answers to no name of others, as all that operators read",
	}},
	{"internal/rollout", adapter, nil},
	{"internal/trace", adapter, nil},
	{"internal/recording", adapter, map[string]string{"extproc": "it implements extproc.Recorder"}},
	{"internal/telemetry", adapter, map[string]string{"extproc": "it implements extproc.Observer"}},

	{"cmd/warmpath", wiring, nil},

	{"bench", support, nil},
	{"examples", support, nil},
	{"internal/archtest", support, nil},
	{"internal/envoybin", support, nil},
	{"internal/otlpsink", support, nil},
	{"internal/stack", support, nil},
	{"internal/testenv", support, nil},
	{"internal/protogen", support, nil},
}

// A pure package takes time, randomness and everything from outside as values,
// so that a test can give it any, and the same input always gives the same
// decision.
var banned = map[string]string{
	"context":      "a pure function does not wait and cannot be cancelled",
	"crypto/rand":  "randomness comes in as a value",
	"io/fs":        "bytes come in as a value",
	"log":          "a decision is a value; who made the call logs it",
	"log/slog":     "a decision is a value; who made the call logs it",
	"math/rand":    "randomness comes in as a value",
	"math/rand/v2": "randomness comes in as a value",
	"net":          "no I/O; addresses are net/netip values",
	"net/http":     "no I/O",
	"os":           "no I/O, no environment",
	"os/exec":      "no I/O",
	"os/signal":    "no I/O",
	"reflect":      "too slow for the path of a request",
	"syscall":      "no I/O",
	"testing":      "test code does not belong into the program",
	"time":         "the clock comes in as a value",
}

// exempt are the bans that do not hold for one package.
var exempt = map[string][]string{
	"bench/replica/engine": {"time"},                 // its results are durations; reading the clock is banned by name in the source
	"internal/health":      {"time"},                 // it is told the time; the same ban holds
	"internal/sim":         {"time", "math/rand/v2"}, // in virtual time, with a seed
	"internal/advice":      {"time"},                 // it compares durations
}

// pureModules may be imported by pure packages: they compute and do nothing else.
var pureModules = []string{"github.com/cespare/xxhash/v2", "github.com/hashicorp/golang-lru/v2"}

// testModules are for tests only.
var testModules = []string{
	"testing", "go.uber.org/goleak", "pgregory.net/rapid", "github.com/google/go-cmp",
	"github.com/cockroachdb/datadriven", "github.com/rogpeppe/go-internal",
}

// vague package names say nothing of what a package does.
var vague = []string{"util", "utils", "common", "helper", "helpers", "manager", "misc", "base", "shared", "types"}

func TestImports(t *testing.T) {
	packages := list(t)
	if len(packages) < 10 {
		t.Fatalf("go list found %d packages", len(packages))
	}
	for _, problem := range importProblems(packages) {
		t.Error(problem)
	}
}

// importProblems returns what is wrong with the packages and their imports.
func importProblems(packages []goPackage) (problems []string) {
	for _, p := range packages {
		report := func(format string, args ...any) {
			problems = append(problems, p.path()+": "+fmt.Sprintf(format, args...))
		}
		if p.Doc == "" {
			report("no package comment: say what the package is for")
		}
		if slices.Contains(vague, p.Name) {
			report("the name %q says nothing: name the package for what it does", p.Name)
		}
		c, ok := componentOf(p.path())
		if !ok {
			report("not in the list of components: add it in internal/archtest with its layer")
			continue
		}
		for _, imported := range p.Imports {
			if reason := forbidden(c, p.path(), imported); reason != "" {
				report("imports %s: %s", imported, reason)
			}
		}
	}
	return problems
}

// componentOf returns the component that holds a package, the longest match.
func componentOf(path string) (component, bool) {
	var best component
	for _, c := range components {
		if (path == c.path || strings.HasPrefix(path, c.path+"/")) && len(c.path) > len(best.path) {
			best = c
		}
	}
	return best, best.path != ""
}

// forbidden returns why a package of c must not import another, "" if it may.
func forbidden(c component, path, imported string) string {
	inside, ok := strings.CutPrefix(imported, module+"/")
	switch {
	case ok:
		return forbiddenInside(c, inside)
	case c.layer == pure:
		return forbiddenPure(path, imported)
	case c.layer != support && within(imported, testModules):
		return "it is for tests only"
	default:
		return ""
	}
}

func forbiddenInside(c component, imported string) string {
	target, _ := componentOf(imported) // an unknown one is reported on its own
	switch {
	case target.path == c.path:
		return ""
	case target.layer == wiring:
		return "nobody imports a program"
	case c.layer == support || target.layer == pure:
		return ""
	case target.layer == support:
		return "the program does not contain what tests and benchmarks use"
	case c.layer == pure:
		return "a pure package imports only pure packages"
	case c.layer == wiring || c.imports[target.path] != "":
		return ""
	default:
		return "adapters do not import each other: cmd connects them"
	}
}

func forbiddenPure(path, imported string) string {
	reason := banned[imported]
	switch {
	case reason != "" && !slices.Contains(exempt[path], imported):
		return reason
	case strings.HasPrefix(imported, "net/") && imported != "net/netip" && imported != "net/url":
		return banned["net"]
	case strings.HasPrefix(imported, "os/"):
		return banned["os"]
	case !strings.Contains(strings.Split(imported, "/")[0], "."): // the standard library
		return ""
	case within(imported, pureModules):
		return ""
	default:
		return "a pure package imports only the standard library and " + strings.Join(pureModules, ", ")
	}
}

// within tells whether a package is in one of the modules.
func within(imported string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool {
		return imported == m || strings.HasPrefix(imported, m+"/")
	})
}

// Each fault is found, and what is allowed is not taken for one.
func TestImportsFindsFaults(t *testing.T) {
	for _, c := range []struct {
		path, imported string
		want           string // part of the problem; empty if there is none
	}{
		{"internal/route", "net", "no I/O"},
		{"internal/route", "net/http", "no I/O"},
		{"internal/route", "net/http/httptrace", "no I/O"},
		{"internal/route", "net/netip", ""},
		{"internal/route", "os/user", "no I/O"},
		{"internal/route", "log/slog", "a decision is a value"},
		{"internal/route", "time", "the clock"},
		{"internal/route", "sync/atomic", ""},
		{"internal/route", "google.golang.org/grpc", "only the standard library"},
		{"internal/prefix", "github.com/cespare/xxhash/v2", ""},
		{"internal/prefix", "github.com/cespare/xxhash/v3", "only the standard library"},
		{"internal/route", module + "/internal/load", ""},
		{"internal/route", module + "/extproc", "only pure packages"},
		{"internal/load", module + "/internal/telemetry", "only pure packages"},
		{"bench/replica/engine", "time", ""},
		{"bench/replica/engine", "net/http", "no I/O"},
		{"extproc", module + "/internal/route", ""},
		{"extproc", module + "/internal/telemetry", "cmd connects them"},
		{"internal/telemetry", module + "/extproc", ""},
		{"internal/config/strict", module + "/internal/config/watch", ""},
		{"internal/config/strict", module + "/xds", "cmd connects them"},
		{"xds", module + "/internal/stack", "what tests and benchmarks use"},
		{"xds", "pgregory.net/rapid", "for tests only"},
		{"bench/replica", "testing", ""},
		{"cmd/warmpath", module + "/bench/replica", "what tests and benchmarks use"},
		{"cmd/warmpath", module + "/xds", ""},
		{"internal/testenv", module + "/cmd/warmpath", "nobody imports a program"},
	} {
		p := goPackage{ImportPath: module + "/" + c.path, Name: "x", Doc: "Package x.", Imports: []string{c.imported}}
		if got := strings.Join(importProblems([]goPackage{p}), "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: got %q, want %q", c.path, c.imported, got, c.want)
		}
	}
	for want, p := range map[string]goPackage{
		"no package comment": {ImportPath: module + "/extproc", Name: "extproc"},
		"says nothing":       {ImportPath: module + "/internal/route/util", Name: "util", Doc: "Package util."},
		"not in the list":    {ImportPath: module + "/internal/new", Name: "new", Doc: "Package new."},
	} {
		if got := strings.Join(importProblems([]goPackage{p}), "; "); !strings.Contains(got, want) {
			t.Errorf("%+v: got %q, want %q", p, got, want)
		}
	}
}
