package prefix

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// The digest of a JSON value does not depend on white space, on the spelling of
// strings or on the order of members:
//
//	string  mix(tagString, XXH64(decoded bytes))
//	scalar  mix(tagScalar, XXH64(the literal as written))
//	array   a = tagArray; for each element a = mix(a, digest)
//	object  mix(tagObject, sum of mix(XXH64(name), digest) over the members)
//	deeper than MaxDepth: mix(tagDeep, XXH64(the bytes as written))
//
// Members named cache_control are left out. Of duplicate members the last one
// counts, among the first maxMembers names of an object; behind those all do.
// Of a string that may be text, textDigestBytes at most are read.
const (
	tagString uint64 = 0x9ae16a3b2f90404f
	tagScalar uint64 = 0xc949c7defebe6bd3
	tagArray  uint64 = 0xb492b66fbe98f273
	tagObject uint64 = 0xe7037ed1a0b428db
	tagDeep   uint64 = 0x8ebc6af09c88c6e3

	maxMembers      = 32
	textDigestBytes = 4096
)

// mix combines two hashes; the order matters.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x2d358dccaa6c78a5, b^0x8bb84b93962eacc9)
	x := hi ^ lo ^ bits.RotateLeft64(a, 32)
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// hashing reports whether a digest of the value that is being read is needed.
func (f *frame) hashing() bool { return f.hash && !f.drop || f.media }

// Digests of what is empty; all but that of an object stand for no images.
var (
	nullDigest  = mix(tagScalar, xxhash.Sum64String("null"))
	emptyDigest = mix(tagString, xxhash.Sum64String(""))
	emptyObject = mix(tagObject, 0)
)

// endMedia makes the images that were read a marker: of the slot, or of the
// message, behind its content.
func (s *Scanner) endMedia(f *frame, digest uint64) {
	f.media = false
	switch {
	case digest == nullDigest || digest == emptyDigest || digest == tagArray:
	case s.depth == 1:
		s.slot.mark([]byte("images"), digest, s.limit)
	default:
		f.images = digest
	}
}

// member is one member of an object that is being digested.
type member struct{ name, value uint64 }

// addMember folds one member into the object f.
func (s *Scanner) addMember(f *frame, m member) {
	for i := f.members; i < len(s.members); i++ {
		if s.members[i].name == m.name {
			s.members[i].value = m.value
			return
		}
	}
	if len(s.members)-f.members < maxMembers {
		s.members = append(s.members, m)
		return
	}
	f.sum += mix(m.name, m.value)
}

// digestOf returns the digest of the container f, which ends.
func (s *Scanner) digestOf(f *frame) uint64 {
	if !f.hash {
		return 0
	}
	if f.array {
		return f.sum
	}
	sum := f.sum
	for _, m := range s.members[f.members:] {
		sum += mix(m.name, m.value)
	}
	s.members = s.members[:f.members]
	return mix(tagObject, sum)
}
