package sim

import (
	"testing"
	"time"
)

// Eight routers that tell each other find what the others have placed, and see the
// queues that they make.
func TestGossip(t *testing.T) {
	run := func(policy string, routers int, interval time.Duration) Result {
		return mustRun(t, policy, Config{Jobs: talks(60, 12, 25*time.Millisecond), Replicas: fleetOf(8), Routers: routers, Gossip: interval, Seed: 1})
	}
	for _, policy := range []string{"auto", "kv_aware"} {
		one, apart, together := run(policy, 1, 0), run(policy, 8, 0), run(policy, 8, 50*time.Millisecond)
		t.Logf("%s: hits of one router %.3f, of eight %.3f, with gossip %.3f; P90 %s, %s, %s", policy, one.HitRate(), apart.HitRate(), together.HitRate(),
			one.Quantile(.9), apart.Quantile(.9), together.Quantile(.9))
		if together.HitRate() < max(apart.HitRate(), one.HitRate())-0.02 {
			t.Errorf("%s: hits of one router %.3f, of eight %.3f, with gossip %.3f", policy, one.HitRate(), apart.HitRate(), together.HitRate())
		}
	}
}

// One router, and policies that tell nothing, are as they are without gossip.
func TestGossipOfNobody(t *testing.T) {
	for _, c := range []struct {
		policy  string
		routers int
	}{{"auto", 1}, {"sglang", 3}} {
		config := Config{Jobs: talks(10, 5, 20*time.Millisecond), Replicas: fleetOf(3), Routers: c.routers, Seed: 2}
		without := mustRun(t, c.policy, config)
		config.Gossip = 50 * time.Millisecond
		if with := mustRun(t, c.policy, config); with.HitTokens != without.HitTokens || with.Elapsed != without.Elapsed {
			t.Errorf("%s: %d hits in %s, without gossip %d in %s", c.policy, with.HitTokens, with.Elapsed, without.HitTokens, without.Elapsed)
		}
	}
}
