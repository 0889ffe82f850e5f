// Command warmpath routes LLM requests to the endpoint whose KV cache already
// holds their beginning, as an ext_proc server and a control plane for Envoy.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	// exitUsage: the command line or a file given to it is wrong.
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `warmpath sends every LLM request to the endpoint whose KV cache is warm for it.

usage:
  warmpath serve CONFIG          run the ext_proc server and the control plane
  warmpath check FILE...         check configuration and membership files
  warmpath explain [flags] FILE  what would be done with a request body, and why
  warmpath top [flags]           watch a running server in the terminal
  warmpath simulate --trace FILE replay a trace on simulated replicas and compare policies
  warmpath advise --trace FILE   replay a trace and say what to set
  warmpath envoy [flags]         print Envoy configuration that fits a warmpath.yaml
  warmpath doctor [flags]        find what is wrong in an Envoy configuration or a running gateway
  warmpath version               print the version

warmpath COMMAND -h tells more of one.
`

// usageError marks an error of the command line or of a file given on it.
type usageError struct{ error }

// run is the whole program. It is the only place that prints errors and
// chooses exit codes.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := dispatch(ctx, args, stdin, stdout, stderr)
	var wrong usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &wrong):
		_, _ = fmt.Fprintf(stderr, "warmpath: %v\n", err)
		return exitUsage
	default:
		_, _ = fmt.Fprintf(stderr, "warmpath: %v\n", err)
		return exitFailed
	}
}

func dispatch(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		_, _ = io.WriteString(stderr, usage)
		return usageError{errors.New("no command given")}
	}
	switch command, rest := args[0], args[1:]; command {
	case "serve":
		return serve(ctx, rest, stdout, stderr)
	case "check":
		return check(rest, stdout)
	case "explain":
		return explain(ctx, rest, stdin, stdout, stderr)
	case "top":
		return top(ctx, rest, stdin, stdout, stderr)
	case "simulate":
		return simulate(rest, stdout, stderr)
	case "advise":
		return advise(rest, stdout, stderr)
	case "envoy":
		return printEnvoy(rest, stdout, stderr)
	case "doctor":
		return examine(ctx, rest, stdout, stderr)
	case "version":
		_, err := fmt.Fprintf(stdout, "warmpath %s\n", version())
		return err
	case "help", "-h", "--help":
		_, err := io.WriteString(stdout, usage)
		return err
	default:
		return usageError{fmt.Errorf("unknown command %q; warmpath help lists them", command)}
	}
}

// version is the module's version as the build recorded it, or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
