package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/internal/stack"
)

const (
	replicas  = 3
	modelName = "tiny"
	// slots is how many requests a replica computes at once.
	slots = 2
)

// addresses are where the engines listen: the same in each run, as by them a prefix has
// its home.
func addresses() []string {
	return replica.Addresses(netip.MustParseAddrPort("127.71.0.1:18100"), replicas)
}

// arguments are those of a llama-server. Its cache keeps two prefixes in its slots and
// 16 MiB of others, about six in all: the default of 8 GiB would keep everything, and
// routing would not matter after a while. Small batches let a warm request in between
// those of a long cold one, and the similarity keeps a new prompt from taking over the
// slot of another while one is free.
func arguments(address, model string) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return append([]string{"-m", model, "--host", host, "--port", port, "--alias", modelName}, strings.Fields(engineFlags)...), nil
}

const engineFlags = "-t 1 -tb 1 --threads-http 4 --parallel 2 -c 16384 --no-kv-unified --cache-ram 16 -fa off -b 256 -ub 256 " +
	"--slot-prompt-similarity 0.8 --metrics --no-ui"

// engines are llama-servers that run.
type engines []*stack.Process

// startEngines starts all replicas with empty caches and waits until they serve. On an
// error none is left.
func startEngines(ctx context.Context, binary, model string, addresses []string) (e engines, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, e.stop())
			e = nil
		}
	}()
	for _, address := range addresses {
		flags, err := arguments(address, model)
		if err != nil {
			return e, err
		}
		p, err := stack.StartProcess("llama-server "+address, nil, append([]string{binary}, flags...)...)
		if err != nil {
			return e, err
		}
		e = append(e, p)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i, address := range addresses {
		if err := e[i].Await(ctx, func() error { return expectOK(ctx, "http://"+address+"/health") }); err != nil {
			return e, err
		}
	}
	return e, nil
}

// stop ends all of them. It tells of those that had ended by themselves.
func (e engines) stop() error {
	var errs []error
	for _, p := range e {
		if p.Ended() {
			errs = append(errs, fmt.Errorf("a llama-server has ended:\n%s", p.Output()))
			continue
		}
		if err := p.Stop(10 * time.Second); err != nil {
			errs = append(errs, fmt.Errorf("stop a llama-server: %w", err))
		}
	}
	return errors.Join(errs...)
}

func expectOK(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}

var versionLine = regexp.MustCompile(`(?m)^version: (.+)$`)

// engineVersion is what the binary calls itself.
func engineVersion(ctx context.Context, binary string) (string, error) {
	out, err := exec.CommandContext(ctx, binary, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("version of llama-server: %w\n%s", err, out)
	}
	if m := versionLine.FindSubmatch(out); m != nil {
		return string(m[1]), nil
	}
	return "unknown", nil
}
