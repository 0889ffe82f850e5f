package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/warmpath/warmpath/internal/certificate"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/fleet"
)

// check reads files as serve would and prints every problem of every file.
func check(args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return usageError{errors.New("check: want a file: warmpath check warmpath.yaml")}
	}
	var problems []error
	for _, path := range args {
		if path == "-h" || path == "--help" {
			_, err := io.WriteString(stdout, "usage: warmpath check FILE...\n\n"+
				"Checks warmpath.yaml files, with the membership and certificate files that each names, and membership files.\n")
			return err
		}
		summary, warnings, err := checkFile(path)
		for _, w := range warnings {
			if _, err := fmt.Fprintf(stdout, "%s: warning: %s\n", path, w); err != nil {
				return err
			}
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if _, err := fmt.Fprintf(stdout, "%s: %s\n", path, summary); err != nil {
			return err
		}
	}
	if err := errors.Join(problems...); err != nil {
		return usageError{err}
	}
	return nil
}

// checkFile tells a membership file by its only key.
func checkFile(path string) (summary string, warnings []string, err error) {
	data, err := watch.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	if isMembership(data) {
		set, err := discovery.ReadFile(path)
		if err != nil {
			return "", nil, err
		}
		return fmt.Sprintf("ok, %d endpoints", set.Len()), nil, nil
	}
	c, sets, err := loadConfig(path)
	if err != nil {
		return "", nil, err
	}
	warnings, err = checkTransport(path, c)
	if _, recordingErr := recordingSetup(c.Recording, path); recordingErr != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w", path, recordingErr))
	}
	heard, gossipErr := checkGossip(c.Gossip, path)
	if warnings = append(warnings, heard...); gossipErr != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w", path, gossipErr))
	}
	if err != nil {
		return "", warnings, err
	}
	summary = "ok, " + summarise(c.Pool, sets[0], path)
	for i, pool := range c.Pools {
		summary += "; pool " + pool.Name + ": " + summarise(pool.Pool, sets[i+1], path)
	}
	return summary, warnings, nil
}

func summarise(p config.Pool, set fleet.Set, path string) string {
	switch m := p.Membership; {
	case m.Kubernetes.Service != "":
		return fmt.Sprintf("%s, the endpoints of Service %s", strategies(p), strings.TrimPrefix(m.Kubernetes.Namespace+"/"+m.Kubernetes.Service, "/"))
	case m.DNS != nil:
		return fmt.Sprintf("%s, endpoints from DNS (%s %s)", strategies(p), m.DNS.Type, m.DNS.Name)
	case m.API != nil && m.API.StateFile != "":
		return fmt.Sprintf("%s, endpoints over HTTP, %d in %s", strategies(p), set.Len(), m.API.Path(path))
	case m.API != nil:
		return fmt.Sprintf("%s, endpoints over HTTP", strategies(p))
	}
	s := fmt.Sprintf("%s, %d endpoints", strategies(p), set.Len())
	if membership := p.Membership.Path(path); membership != "" {
		s += " in " + membership
	}
	return s
}

// strategies are how a pool is routed, and what is on trial.
func strategies(p config.Pool) string {
	s := string(p.RoutingConfig.RoutingStrategy)
	for _, x := range []struct {
		name string
		config.Trial
	}{{"shadow", p.Shadow}, {"split", p.Split}} {
		if x.Share > 0 {
			s += fmt.Sprintf(" (%s of %g %%: %s)", x.name, 100*x.Share, x.RoutingStrategy)
		}
	}
	return s
}

// checkTransport looks at the certificates of a configuration, and at who can
// reach the admin listener.
func checkTransport(path string, c config.Config) (warnings []string, err error) {
	var problems []error
	for _, l := range tlsListeners(c.TLS) {
		if !l.config.On() {
			continue
		}
		p, w := certificate.Inspect(files(l.config, path), time.Now())
		for _, text := range p {
			problems = append(problems, fmt.Errorf("%s: tls.%s: %s", path, l.name, text))
		}
		for _, text := range w {
			warnings = append(warnings, "tls."+l.name+": "+text)
		}
	}
	if exposed(c) {
		warnings = append(warnings, fmt.Sprintf("listen.admin: %q %s", c.Listen.Admin, exposure))
	}
	return warnings, errors.Join(problems...)
}

// loadConfig reads a configuration and the memberships as they are now: that of the
// default pool, and of the others in their order. It asks no API server: the endpoints
// of a Service are not in the sets.
func loadConfig(path string) (config.Config, []fleet.Set, error) {
	c, err := config.Load(path)
	if err != nil {
		return config.Config{}, nil, err
	}
	all := []config.Pool{c.Pool}
	for _, named := range c.Pools {
		all = append(all, named.Pool)
	}
	var sets []fleet.Set
	var problems []error
	for _, pool := range all {
		set, err := loadMembership(pool.Membership, path)
		sets, problems = append(sets, set), append(problems, err)
	}
	return c, sets, errors.Join(problems...)
}

// loadMembership reads what files say: of a membership from DNS or over HTTP that is
// the state file, if there is one yet.
func loadMembership(m config.Membership, path string) (fleet.Set, error) {
	if membership := m.Path(path); membership != "" {
		return discovery.ReadFile(membership)
	}
	if m.API != nil && m.API.StateFile != "" {
		set, err := discovery.ReadFile(m.API.Path(path))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return set, err
	}
	set, _ := fleet.NewSet(m.Static)
	return set, nil
}

// isMembership tells a membership file from a configuration: by the key that
// only it has.
func isMembership(data []byte) bool {
	var top map[string]yaml.Node
	if err := yaml.Unmarshal(data, &top); err != nil {
		return false // the configuration's reader says what is wrong
	}
	_, ok := top["endpoints"]
	return ok
}
