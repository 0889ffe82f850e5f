package main

import "testing"

// Eight routers that gossip hit as one does and are as fast as eight that do not, or
// faster; cut off from each other they lose less than a point.
func TestGossipOnRealTraces(t *testing.T) {
	for _, tc := range []struct{ format, path, model, cache, speed string }{
		{"ragpulse", "ragpulse", "llama-70b", "5100000", "1800"},
		{"weka", "weka_claude_code_63sessions_2h.jsonl.gz", "llama-70b", "2600000", "15"},
		{"mooncake", "mooncake_conversation.jsonl.gz", "llama-70b", "5100000", "4"},
		{"miniswe", "lmcache_miniswe.jsonl.gz", "llama-8b", "160000", "20"},
		{"realhumaneval", "realhumaneval_chat.csv.gz", "llama-8b", "160000", "40"},
		{"copilot", "copilot_completion.jsonl.gz", "llama-8b", "160000", "100"},
	} {
		t.Run(tc.format, func(t *testing.T) {
			t.Parallel()
			run := func(routers, gossip string) policyResult {
				return simulateJSON(t, "-trace", "../../bench/data/"+tc.path, "-format", tc.format, "-model", tc.model, "-cache-tokens", tc.cache,
					"-speed", tc.speed, "-policy", "auto", "-routers", routers, "-gossip", gossip).Results[0]
			}
			one, apart, together := run("1", "0"), run("8", "0"), run("8", "50ms")
			t.Logf("hits of one router %.2f %%, of eight %.2f %%, with gossip %.2f %%; P90 %.0f, %.0f, %.0f ms", 100*one.HitRate, 100*apart.HitRate,
				100*together.HitRate, one.TTFT.P90, apart.TTFT.P90, together.TTFT.P90)
			if together.HitRate-apart.HitRate > 0.01 {
				t.Errorf("without gossip hits fall from %.2f to %.2f %%", 100*together.HitRate, 100*apart.HitRate)
			}
			if together.HitRate < min(one.HitRate, apart.HitRate)-0.005 || together.TTFT.P90 > 1.02*apart.TTFT.P90 {
				t.Errorf("with gossip %.2f %% and %.0f ms, without %.2f %% and %.0f ms", 100*together.HitRate, together.TTFT.P90, 100*apart.HitRate, apart.TTFT.P90)
			}
		})
	}
}
