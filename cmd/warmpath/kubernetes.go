package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/discovery/kubernetes"
	"github.com/warmpath/warmpath/internal/endpointslice"
)

// serviceAccount is where a pod finds what it needs to speak to its API server.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// sourceOf makes the source of a membership.
func (p *program) sourceOf(m config.Membership) (discovery.Source, error) {
	if m.Kubernetes.Service == "" {
		return discovery.New(m, p.path), nil
	}
	o, err := kubernetesOptions(m.Kubernetes.Paths(p.path), serviceAccount, os.Getenv)
	if err != nil {
		return nil, usageError{fmt.Errorf("membership.kubernetes: %w", err)}
	}
	source, err := kubernetes.New(o)
	if err != nil {
		return nil, usageError{fmt.Errorf("membership.kubernetes: %w", err)}
	}
	p.log.Info("the membership is that of a Service", "namespace", o.Namespace, "service", o.Service, "apiServer", o.Server)
	return source, nil
}

// kubernetesOptions fills in what a pod knows of its cluster: account is the
// folder of its ServiceAccount, and getenv reads its environment.
func kubernetesOptions(k config.Kubernetes, account string, getenv func(string) string) (kubernetes.Options, error) {
	port, err := endpointslice.ParsePort(k.Port)
	if err != nil {
		return kubernetes.Options{}, err
	}
	o := kubernetes.Options{
		Server: k.APIServer, TokenFile: k.TokenFile, CAFile: k.CAFile, Namespace: k.Namespace, Service: k.Service,
		Slices: endpointslice.Options{Port: port, Gone: k.Terminating == config.Gone},
	}
	if o.Server == "" {
		host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return o, fmt.Errorf("no apiServer is given, and KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT (%q, %q) name none: not in a pod?", host, port)
		}
		o.Server = "https://" + net.JoinHostPort(host, port)
		if o.TokenFile == "" {
			o.TokenFile = filepath.Join(account, "token")
		}
		if o.CAFile == "" {
			o.CAFile = filepath.Join(account, "ca.crt")
		}
	}
	if o.Namespace == "" {
		data, err := watch.ReadFile(filepath.Join(account, "namespace"))
		if err != nil {
			return o, fmt.Errorf("no namespace is given: %w", err)
		}
		o.Namespace = strings.TrimSpace(string(data))
	}
	return o, nil
}
