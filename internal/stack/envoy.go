package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/warmpath/warmpath/envoy"
)

// StartEnvoy starts Envoy and waits until it has the endpoints. With HotRestart one
// that runs hands its listeners over to the new one, finishes its requests and ends.
func (s *Stack) StartEnvoy(ctx context.Context) error {
	path, err := s.writeBootstrap()
	if err != nil {
		return err
	}
	command := []string{s.options.Envoy, "-c", path, "--concurrency", "2", "-l", "warning"}
	restart, err := s.restartFlags()
	if err != nil {
		return err
	}
	if s.Envoy, err = StartProcess("envoy", nil, append(command, restart...)...); err != nil {
		return err
	}
	return s.Envoy.Await(ctx, func() error {
		if err := expectOK(ctx, "http://"+s.ports.envoyAdmin+"/ready"); err != nil {
			return err
		}
		return s.EnvoyKnows(ctx, s.options.Replicas)
	})
}

// AnotherEnvoy starts one more Envoy for the same warmpath, with ports of its own,
// and returns the stack as its clients see it. Whoever calls ends that Envoy.
func (s *Stack) AnotherEnvoy(ctx context.Context) (*Stack, error) {
	other := *s
	if err := other.chooseEnvoyPorts(); err != nil {
		return nil, err
	}
	return &other, other.StartEnvoy(ctx)
}

// writeBootstrap writes the configuration of an Envoy, one file for each listener.
func (s *Stack) writeBootstrap() (path string, err error) {
	addresses, err := s.addresses()
	if err != nil {
		return "", err
	}
	bootstrap, err := envoy.Bootstrap(addresses)
	if err == nil && s.options.Bootstrap != nil {
		bootstrap, err = s.options.Bootstrap(bootstrap)
	}
	if err != nil {
		return "", err
	}
	path = filepath.Join(s.options.Dir, "envoy-"+strings.ReplaceAll(s.ports.listener, ":", "-")+".yaml")
	return path, os.WriteFile(path, bootstrap, 0o600)
}

// restartFlags are those with which the next Envoy finds the one that runs.
func (s *Stack) restartFlags() ([]string, error) {
	if !s.options.HotRestart {
		return []string{"--disable-hot-restart"}, nil
	}
	idFile := filepath.Join(s.options.Dir, "envoy-base-id")
	flags := []string{"--drain-time-s", "3", "--drain-strategy", "immediate", "--parent-shutdown-time-s", "8", "--base-id-path", idFile}
	if s.epoch == 0 {
		s.epoch++
		return append(flags, "--use-dynamic-base-id"), nil
	}
	id, err := os.ReadFile(idFile)
	if err != nil {
		return nil, fmt.Errorf("base id of the Envoy that runs: %w", err)
	}
	flags = append(flags, "--base-id", strings.TrimSpace(string(id)), "--restart-epoch", fmt.Sprint(s.epoch))
	s.epoch++
	return flags, nil
}

// addresses are what Envoy is configured with.
func (s *Stack) addresses() (envoy.Addresses, error) {
	a := envoy.Addresses{Admin: s.ports.envoyAdmin, Listener: s.ports.listener, ExtProc: s.extProc(), XDS: s.xds()}
	if s.options.Between == nil {
		return a, nil
	}
	return s.options.Between(a)
}
