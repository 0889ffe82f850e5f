package recording

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
)

// Bounds of a salt, in bytes. Fewer can be guessed.
const (
	MinSalt = 16
	MaxSalt = 4096
)

// Salt makes the hashes of one recording incomparable with those of another, and
// with the hashes of texts that somebody guesses.
type Salt [sha256.Size]byte

// NewSalt returns a salt that nobody knows.
func NewSalt() (s Salt) {
	_, _ = rand.Read(s[:]) // it never fails
	return s
}

// ReadSalt reads a salt from a file of MinSalt to MaxSalt bytes, all of which count.
func ReadSalt(path string) (Salt, error) {
	file, err := os.Open(path)
	if err != nil {
		return Salt{}, fmt.Errorf("read salt: %w", err)
	}
	defer file.Close()
	secret, err := io.ReadAll(io.LimitReader(file, MaxSalt+1))
	switch n := len(secret); {
	case err != nil:
		return Salt{}, fmt.Errorf("read salt: %w", err)
	case n > MaxSalt:
		return Salt{}, fmt.Errorf("read salt: %s has more than %d bytes", path, MaxSalt)
	case n < MinSalt:
		return Salt{}, fmt.Errorf("read salt: %s has %d bytes, want %d to %d", path, n, MinSalt, MaxSalt)
	}
	return sha256.Sum256(secret), nil
}

// What a hash is of goes into it, so that those of different things cannot be
// compared either.
const (
	ofBlock byte = iota + 1
	ofSample
	ofTenant
	ofModel
	ofSalt
	ofPrefix
)

// exactBits is how large an integer may be for every reader of JSON to keep it
// exactly, as a power of two.
const exactBits = 53

// number is a hash of a number, below 1<<exactBits. SHA-256 of the secret and a
// fixed length is a keyed hash: without the salt nothing can be learned from it but
// equality.
func (s *Salt) number(of byte, n uint64) uint64 {
	var in [sha256.Size + 9]byte
	copy(in[:], s[:])
	in[sha256.Size] = of
	binary.LittleEndian.PutUint64(in[sha256.Size+1:], n)
	sum := sha256.Sum256(in[:])
	return binary.LittleEndian.Uint64(sum[:]) >> (64 - exactBits)
}

// name is a hash of a name, as 16 hexadecimal digits; "" stays "".
func (s *Salt) name(of byte, name string) string {
	if name == "" {
		return ""
	}
	in := append(append(make([]byte, 0, sha256.Size+1+len(name)), s[:]...), of)
	inner := sha256.Sum256(append(in, name...))
	// Hashed once more: a name may have any length, and a plain hash could be
	// continued by whoever has it.
	outer := sha256.Sum256(append(append(in[:0], s[:]...), inner[:]...))
	return hex.EncodeToString(outer[:8])
}

// Prefix is a hash of a prefix's key, for people to tell prefixes apart by, as 16
// hexadecimal digits.
func (s *Salt) Prefix(key string) string { return s.name(ofPrefix, key) }

// id tells salts apart without giving them away.
func (s *Salt) id() string { return s.name(ofSalt, "id")[:8] }

// threshold is what the sampling hashes of a share of all beginnings are below.
func threshold(ratio float64) uint64 { return uint64(math.Round(ratio * (1 << exactBits))) }
