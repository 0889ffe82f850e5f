package trace

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// appendChunks appends the chained hash of each whole chunk of a prompt made of
// pieces. A chunk is the run of (id, offset within the piece, length) that it
// covers, so that pieces of any size are cut into several chunks or joined to one,
// and prompts share a chunk exactly if they share everything up to its end as far as the
// ids tell. A shorter last piece has its id for its whole chunks only.
func appendChunks(chunks []uint64, seed uint64, pieces []piece) []uint64 {
	h, have := seed, 0
	for _, p := range pieces {
		for offset := 0; offset < p.tokens; {
			n := min(ChunkTokens-have, p.tokens-offset)
			h = link(h, p.id, offset, n)
			offset += n
			if have += n; have == ChunkTokens {
				chunks, have = append(chunks, h), 0
			}
		}
	}
	return chunks
}

// link hashes a part of a piece behind what was hashed before.
func link(before, id uint64, offset, n int) uint64 {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], before)
	binary.LittleEndian.PutUint64(b[8:], id)
	binary.LittleEndian.PutUint32(b[16:], uint32(offset))
	binary.LittleEndian.PutUint32(b[20:], uint32(n))
	return xxhash.Sum64(b[:])
}

// blocks appends the pieces of a prompt that is cut into blocks of a size, of
// which the last may be shorter or left out.
func blocks(pieces []piece, ids []uint64, size, tokens int) []piece {
	for i, id := range ids {
		pieces = append(pieces, piece{id: id, tokens: min(size, tokens-i*size)})
	}
	return pieces
}
