package trial

import (
	"math"

	"github.com/warmpath/warmpath/internal/route"
)

// Bounds of [Settings].ShareLength, in characters.
const (
	MinShareLength = route.LevelChars
	MaxShareLength = route.MaxPrefixLength
)

// The salts keep what is in one share from telling of the other. They are the same in
// every process, so that routers agree whose a conversation is, and after a restart too.
const (
	shadowSalt uint64 = 0x736861646f77_0001
	splitSalt  uint64 = 0x73706c6974_000001
)

// share is a part of all conversations: those whose beginning, with its tenant and model,
// is hashed below a mark. A larger share has all that a smaller one has.
type share struct {
	salt  uint64
	below uint64 // of all hashes
	all   bool
	level int // whose key is hashed, 1 for the first
}

func newShare(s Settings, salt uint64) share {
	return share{
		salt: salt, all: s.Share >= 1, below: uint64(math.Min(math.Max(s.Share, 0), 0x1.fffffffffffffp-1) * (1 << 63) * 2),
		level: max((s.ShareLength+route.LevelChars-1)/route.LevelChars, 1),
	}
}

// has reports whether a prompt is in the share: by the key of its beginning, or of all of
// it if it is shorter.
func (s share) has(levels []uint64, key uint64) bool {
	if len(levels) >= s.level {
		key = levels[s.level-1]
	}
	return s.hasHash(key)
}

func (s share) hasHash(key uint64) bool { return s.all || mixed(key^s.salt) < s.below }

// mixed is the finalizer of splitmix64: every bit of a key counts.
func mixed(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
