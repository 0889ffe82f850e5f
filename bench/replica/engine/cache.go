package engine

import (
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Cache is the prefix cache of one replica: blocks by chained hash, the least
// recently used evicted first. It is not safe for concurrent use.
//
// Blocks of running requests can be evicted, where vLLM keeps them by
// reference count; it matters only when the running requests fill the cache.
type Cache struct {
	blocks *simplelru.LRU[uint64, struct{}]
}

// NewCache returns an empty cache of capacity tokens, at least one block.
func NewCache(capacity int) (*Cache, error) {
	if capacity < BlockTokens {
		return nil, fmt.Errorf("cache of %d tokens: want at least one block of %d", capacity, BlockTokens)
	}
	blocks, err := simplelru.NewLRU[uint64, struct{}](capacity/BlockTokens, nil)
	if err != nil {
		return nil, fmt.Errorf("cache of %d tokens: %w", capacity, err)
	}
	return &Cache{blocks: blocks}, nil
}

// Len returns the number of tokens held.
func (c *Cache) Len() int { return c.blocks.Len() * BlockTokens }

// Cached returns how many of the prompt's tokens need no prefill: the full
// blocks present from the beginning on without a gap. The last token is always
// computed, because its output is what the engine samples from; a prompt that
// is cached to its end therefore loses its last block. Use is not marked.
func (c *Cache) Cached(p Prompt) int {
	limit := min(len(p.Blocks), max(p.Tokens-1, 0)/BlockTokens)
	for i, h := range p.Blocks[:limit] {
		if !c.blocks.Contains(h) {
			return i * BlockTokens
		}
	}
	return limit * BlockTokens
}

// Store makes the prompt's full blocks the most recently used ones. Call it
// when the prefill has ended, not before: vLLM lets a block be hit only after
// it was computed, so simultaneous equal prompts all miss.
//
// The tail is touched first, so that within one prompt the tail is evicted
// before the head, which more prompts share.
func (c *Cache) Store(p Prompt) {
	for i := len(p.Blocks) - 1; i >= 0; i-- {
		c.blocks.Add(p.Blocks[i], struct{}{})
	}
}

// Clear empties the cache.
func (c *Cache) Clear() { c.blocks.Purge() }
