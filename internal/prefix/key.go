package prefix

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// LevelChars is the number of characters between two levels of a chained key.
const LevelChars = 256

// layout names the version of the key's layout; a change of anything that
// enters a key changes it.
const layout = "warmpath/1"

// chain appends to levels the chained hash of each full chunk and returns them
// with the key. For raw bytes every byte is a character.
func chain(d *xxhash.Digest, h uint64, body []byte, kind Kind, levels []uint64) (uint64, []uint64) {
	for len(body) > 0 {
		n, chars := min(LevelChars, len(body)), min(LevelChars, len(body))
		if kind == Text {
			n, chars = advance(body, LevelChars)
		}
		d.ResetWithSeed(h)
		_, _ = d.Write(body[:n])
		h = d.Sum64()
		if chars == LevelChars {
			levels = append(levels, h)
		}
		body = body[n:]
	}
	return h, levels
}

// root returns h(0), the hash of everything but the text.
func root(d *xxhash.Digest, kind Kind, tenant, salt, model, adapter string) uint64 {
	d.ResetWithSeed(0)
	_, _ = d.WriteString(layout)
	if kind == Raw {
		_, _ = d.WriteString("r")
	} else {
		_, _ = d.WriteString("t")
	}
	for _, field := range [...]string{tenant, salt, model, adapter} {
		writeLen(d, len(field))
		_, _ = d.WriteString(field)
	}
	return d.Sum64()
}

func writeLen(d *xxhash.Digest, n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, _ = d.Write(b[:])
}
