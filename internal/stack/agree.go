package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// What must be true of a whole warmpath whenever nothing disturbs it.

// AwaitRest waits until warmpath counts no request as running.
func (s *Stack) AwaitRest(ctx context.Context) error {
	return s.Await(ctx, "all counts at 0", func() error {
		status, err := s.Status(ctx)
		if err != nil {
			return err
		}
		if counts := status.Outstanding(); len(counts) > 0 {
			return fmt.Errorf("outstanding %v", counts)
		}
		return nil
	})
}

// AwaitTruth waits until warmpath's counts are the replicas' own.
func (s *Stack) AwaitTruth(ctx context.Context) error {
	return s.Await(ctx, "counts equal to the replicas' truth", func() error {
		status, err := s.Status(ctx)
		if err != nil {
			return err
		}
		truth := make(map[string]int64)
		for _, r := range s.Replicas.Stats() {
			if r.Outstanding != 0 {
				truth[r.Replica] = r.Outstanding
			}
		}
		if counts := status.Outstanding(); !maps.Equal(counts, truth) {
			return fmt.Errorf("warmpath counts %v, the replicas %v", counts, truth)
		}
		return nil
	})
}

// AwaitEnvoyRest waits until Envoy counts no request of the pool as running.
func (s *Stack) AwaitEnvoyRest(ctx context.Context) error {
	return s.Await(ctx, "Envoy at rest", func() error {
		clusters, err := s.EnvoyAdmin(ctx, "/clusters")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(clusters)) {
			if strings.HasPrefix(line, "warmpath_pool::") && strings.Contains(line, "::rq_active::") && !strings.HasSuffix(line, "::0\n") {
				return fmt.Errorf("not idle in Envoy: %q", line)
			}
		}
		return nil
	})
}

// AwaitSteering waits until Envoy has found warmpath healthy once more.
func (s *Stack) AwaitSteering(ctx context.Context) error {
	const checks = "cluster.warmpath_ext_proc.health_check.success"
	before, err := s.EnvoyCounter(ctx, checks)
	if err != nil {
		return err
	}
	return s.Await(ctx, "Envoy to ask warmpath again", func() error {
		now, err := s.EnvoyCounter(ctx, checks)
		if err == nil && now == before {
			err = errors.New("no health check has succeeded")
		}
		return err
	})
}

// PassedOver is how many requests Envoy has sent on without warmpath's word,
// because that was too slow or not there.
func (s *Stack) PassedOver(ctx context.Context) (int, error) {
	return s.EnvoyCounter(ctx, "http.llm.ext_proc.failure_mode_allowed")
}

// EnvoyCounter is one of Envoy's statistics.
func (s *Stack) EnvoyCounter(ctx context.Context, name string) (int, error) {
	text, err := s.EnvoyAdmin(ctx, "/stats?filter=^"+regexp.QuoteMeta(name)+"$")
	if err != nil {
		return 0, err
	}
	_, value, _ := strings.Cut(strings.TrimSpace(string(text)), ": ")
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("statistic %s of Envoy is %q: %w", name, text, err)
	}
	return n, nil
}
