package engine

// blockID is the place of a block in the KV memory.
type blockID int32

// none ends the list of free blocks.
const none blockID = -1

// block is one block of KV memory.
type block struct {
	hash       uint64
	prev, next blockID // in the list of free blocks, when refs is 0
	refs       int32   // the running requests that use it
	hashed     bool    // its content can be hit by its hash
}

// blocks is the KV memory: pinned blocks, and free ones in a list with the least
// recently freed first. A free block keeps its content until it is taken.
type blocks struct {
	// all grows up to capacity, as new blocks are taken before old ones.
	all      []block
	capacity int
	free     int // those never used included
	first    blockID
	last     blockID
	byHash   map[uint64]blockID
}

func newBlocks(capacity int) *blocks {
	return &blocks{capacity: capacity, free: capacity, first: none, last: none, byHash: make(map[uint64]blockID)}
}

// pinned returns the number of blocks that running requests use.
func (b *blocks) pinned() int { return b.capacity - b.free }

// match returns how many of the hashes, from the beginning on without a gap,
// are present, and how many of the blocks that hold them are free.
func (b *blocks) match(hashes []uint64) (present, free int) {
	for _, h := range hashes {
		id, ok := b.byHash[h]
		if !ok {
			break
		}
		present++
		if b.all[id].refs == 0 {
			free++
		}
	}
	return present, free
}

// reserve pins the present blocks and as many empty ones as are missing.
func (b *blocks) reserve(present []uint64, needed int) []blockID {
	held := make([]blockID, 0, needed)
	for _, h := range present {
		held = append(held, b.pin(h))
	}
	for len(held) < needed {
		held = append(held, b.take())
	}
	return held
}

// pin takes the present block of a hash for one more request.
func (b *blocks) pin(hash uint64) blockID {
	id := b.byHash[hash]
	if b.all[id].refs == 0 {
		b.unlink(id)
	}
	b.all[id].refs++
	return id
}

// take pins an empty block: a new one, or the one freed the longest ago, whose
// content is lost. There must be a free one.
func (b *blocks) take() blockID {
	if len(b.all) < b.capacity {
		b.free--
		b.all = append(b.all, block{refs: 1})
		return blockID(len(b.all) - 1)
	}
	id := b.first
	b.unlink(id)
	b.forget(id)
	b.all[id].refs = 1
	return id
}

// publish makes the content of a block hit-able. If another block holds the
// same, this one stays without a name: vLLM does not merge them either.
func (b *blocks) publish(id blockID, hash uint64) {
	if _, ok := b.byHash[hash]; ok {
		return
	}
	b.byHash[hash] = id
	b.all[id].hash, b.all[id].hashed = hash, true
}

// release takes one request off the blocks, the last first, so that a tail is
// evicted before the head, which more prompts share.
func (b *blocks) release(ids []blockID) {
	for i := len(ids) - 1; i >= 0; i-- {
		if b.all[ids[i]].refs--; b.all[ids[i]].refs == 0 {
			b.link(ids[i])
		}
	}
}

// clear forgets the content of every block; what is pinned stays pinned.
func (b *blocks) clear() {
	clear(b.byHash)
	for i := range b.all {
		b.all[i].hashed = false
	}
}

func (b *blocks) forget(id blockID) {
	if b.all[id].hashed {
		delete(b.byHash, b.all[id].hash)
		b.all[id].hashed = false
	}
}

// link puts a block at the end of the list of free ones.
func (b *blocks) link(id blockID) {
	b.free++
	b.all[id].prev, b.all[id].next = b.last, none
	if b.last == none {
		b.first = id
	} else {
		b.all[b.last].next = id
	}
	b.last = id
}

func (b *blocks) unlink(id blockID) {
	b.free--
	prev, next := b.all[id].prev, b.all[id].next
	if prev == none {
		b.first = next
	} else {
		b.all[prev].next = next
	}
	if next == none {
		b.last = prev
	} else {
		b.all[next].prev = prev
	}
}
