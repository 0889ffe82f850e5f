package main

import (
	"net"

	"github.com/warmpath/warmpath/internal/stack"
)

// startPeer starts another router, from its Python package, in the place of Envoy:
// clients send to it, and it to the model servers.
//
// Settings: the policy cache_aware, which is the one that routes by prefix in all of
// them, with the defaults of their launchers; nothing below warnings is logged, as
// Envoy logs here; bodies as large as warmpath's limit are taken by default. Health
// checks, retries and metrics stay on, as warmpath's do.
func (s *system) startPeer(r *running) (err error) {
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(r.listener)
	if err != nil {
		return err
	}
	_, metricsPort, err := net.SplitHostPort(metrics)
	if err != nil {
		return err
	}
	warnings := "warn"
	if r.module == "vllm_router" {
		warnings = "warning"
	}
	command := []string{
		s.binaries.peers, "-m", r.module + ".launch_router",
		"--host", "127.0.0.1", "--port", port, "--policy", "cache_aware", "--log-level", warnings,
		"--prometheus-host", "127.0.0.1", "--prometheus-port", metricsPort, "--worker-urls",
	}
	for _, address := range s.upstream.addresses {
		command = append(command, "http://"+address)
	}
	r.router, err = stack.StartProcess(r.name, nil, command...)
	return err
}
