package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/warmpath/warmpath/bench/chaos/link"
	"github.com/warmpath/warmpath/bench/chaos/traffic"
	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/otlpsink"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
)

// setup is what the parts have different.
type setup struct {
	replicas int  // 0 is 7
	traced   bool // spans go to a collector
	extra    string
}

// system is Envoy, warmpath, the replicas, the link from the first to the second,
// and a collector of spans.
type system struct {
	*stack.Stack
	dir       string
	decisions *link.Link
	spans     *otlpsink.Sink
}

// start starts everything.
func start(ctx context.Context, o options, u setup) (_ *system, err error) {
	s := new(system)
	if s.dir, err = os.MkdirTemp("", "warmpath-streams-"); err != nil {
		return nil, err
	}
	config := stack.Config{Strategy: "PREFIX_AWARE", PrefixLength: route.AutoPrefixLength, Extra: "cluster: {connectTimeout: 10s}\n" + u.extra}
	if u.traced {
		if s.spans, err = otlpsink.Start(); err != nil {
			return nil, errors.Join(err, s.close())
		}
		config.OTLPEndpoint = s.spans.Address()
	}
	s.Stack, err = stack.Start(ctx, stack.Options{
		Warmpath: []string{o.warmpath}, Envoy: o.envoy, Dir: s.dir, Replicas: u.replicas,
		Replica: replica.Params{Engine: engine.Llama70B(), TimeScale: 1000},
		Config:  config, Bootstrap: reveal, Between: s.between,
	})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// reveal has Envoy tell in each response whom warmpath had named, and wait longer
// for it than shipped: here clients and replicas take the processors that warmpath
// would have, and what it takes is in question, not how soon it answers.
func reveal(bootstrap []byte) ([]byte, error) {
	text := string(bootstrap)
	for _, change := range [][2]string{{"message_timeout: 0.25s", "message_timeout: 10s"}, {"    - timeout: 0.3s\n", "    - timeout: 10s\n"}} {
		if n := strings.Count(text, change[0]); n != 1 {
			return nil, fmt.Errorf("longer timeouts: Envoy's configuration contains %q %d times, want once", change[0], n)
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	return traffic.Reveal([]byte(text))
}

// between puts the link between Envoy and warmpath, the same for every Envoy.
func (s *system) between(a envoy.Addresses) (_ envoy.Addresses, err error) {
	if s.decisions == nil {
		if s.decisions, err = link.New(a.ExtProc); err != nil {
			return a, err
		}
	}
	a.ExtProc = s.decisions.Address()
	return a, nil
}

func (s *system) close() error {
	var errs []error
	if s.Stack != nil {
		errs = append(errs, s.Stack.Close())
	}
	if s.decisions != nil {
		errs = append(errs, s.decisions.Close())
	}
	if s.spans != nil {
		s.spans.Close()
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
