package engine

import (
	"errors"
	"fmt"
)

// Check counts everything again and returns what does not add up.
func (s *Scheduler) Check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	refs := make([]int32, len(s.blocks.all))
	context := 0
	for _, r := range s.decoding {
		context += r.PromptTokens + r.generated
	}
	for _, list := range [][]*Request{s.decoding, s.prefills} {
		for _, r := range list {
			for _, id := range r.held {
				refs[id]++
			}
		}
	}
	if context != s.context {
		fail("context of %d tokens, kept as %d", context, s.context)
	}
	free, prev := s.blocks.capacity-len(s.blocks.all), none
	for id := s.blocks.first; id != none; prev, id = id, s.blocks.all[id].next {
		if free++; s.blocks.all[id].prev != prev || refs[id] != 0 {
			fail("free block %d: previous %d, want %d; %d references", id, s.blocks.all[id].prev, prev, refs[id])
		}
	}
	if free != s.blocks.free || prev != s.blocks.last {
		fail("%d free blocks, kept as %d", free, s.blocks.free)
	}
	pinned, named := 0, 0
	for id, b := range s.blocks.all {
		if b.refs != refs[id] {
			fail("block %d: %d references, %d running requests hold it", id, b.refs, refs[id])
		}
		if b.refs > 0 {
			pinned++
		}
		if b.hashed {
			named++
			if at, ok := s.blocks.byHash[b.hash]; !ok || at != blockID(id) {
				fail("block %d has the hash of block %d", id, at)
			}
		}
	}
	if pinned+free != s.blocks.capacity || named != len(s.blocks.byHash) {
		fail("%d pinned + %d free of %d blocks; %d with a hash, %d hashes", pinned, free, s.blocks.capacity, named, len(s.blocks.byHash))
	}
	return errors.Join(errs...)
}
