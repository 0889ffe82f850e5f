package main

import (
	"math"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
)

// blockTokens is the block of the replicas' caches.
const blockTokens = 16

// expectedHitRate is the part of the prompts' tokens that the cache of the replica
// chosen knows, 0..1, when each request goes to any of n replicas with equal
// probability, one after the other, and the caches lose nothing. With one replica
// it is the ceiling: no routing can hit more.
//
// A block that so many earlier requests had is in the cache of the replica chosen
// unless all of them went elsewhere: 1 - (1-1/n)^earlier. Whoever has a block has
// those before it too, so that the expectations of blocks add up.
func expectedHitRate(requests []load.Request, n, blockTokens int) (float64, error) {
	earlier := make(map[uint64]int)
	elsewhere := 1 - 1/float64(n)
	tokens, hit := 0, 0.0
	for _, q := range requests {
		p, err := replica.PromptOf(q.Body, blockTokens)
		if err != nil {
			return 0, err
		}
		tokens += p.Tokens
		for i, block := range p.Blocks {
			if hitable(p, i, blockTokens) {
				hit += float64(blockTokens) * (1 - math.Pow(elsewhere, float64(earlier[block])))
			}
			earlier[block]++
		}
	}
	return hit / float64(max(tokens, 1)), nil
}

// hitable tells whether a hit of block i counts: an engine computes the last token
// of a prompt in any case, and with it the block that it is in.
func hitable(p engine.Prompt, i, blockTokens int) bool { return (i+1)*blockTokens < p.Tokens }
