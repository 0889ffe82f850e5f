package prefix

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// markerByte stands in front of a marker's digest. It occurs in no UTF-8 text.
const (
	markerByte = 0xFF
	markerLen  = 9
)

// branch is how far a text has come at some point of the document. Going back
// to a former branch, and cutting the buffer, undoes everything behind it.
type branch struct {
	chars int
	// any: there is a piece already, so that the next one starts with a newline.
	any bool
	// skipped: the leading piece that is not part of the text was dropped.
	skipped bool
}

// slot collects the canonical text of one member of the root object, up to a
// limit of characters.
type slot struct {
	buf []byte
	cur branch
	// fresh: a piece was begun, but nothing of it was written yet.
	fresh bool
}

func (t *slot) reset() { t.buf, t.cur, t.fresh = t.buf[:0], branch{}, false }

// open makes room for n characters more, at most limit in all, writing the
// newline in front of a piece that begins.
func (t *slot) open(limit int) (room int) {
	if t.fresh {
		t.fresh = false
		if t.cur.any && t.cur.chars < limit {
			t.buf = append(t.buf, '\n')
			t.cur.chars++
		}
		t.cur.any = true
	}
	return limit - t.cur.chars
}

// write appends valid UTF-8 to the current piece.
func (t *slot) write(p []byte, limit int) {
	if len(p) == 0 {
		return
	}
	room := t.open(limit)
	if room <= 0 {
		return
	}
	n, chars := cutRunes(p, room)
	t.buf = append(t.buf, p[:n]...)
	t.cur.chars += chars
}

// mark appends a marker as a piece of its own.
func (t *slot) mark(name []byte, digest uint64, limit int) {
	t.fresh = true
	if t.open(limit) <= 0 {
		return
	}
	t.buf = append(t.buf, markerByte)
	t.buf = binary.LittleEndian.AppendUint64(t.buf, digest)
	var shown [1 + len(label{}.buf) + 1]byte
	t.write(append(append(append(shown[:0], '<'), name...), '>'), limit)
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// runeStarts counts the bytes of a word that do not continue a character.
func runeStarts(w uint64) int { return 8 - bits.OnesCount64(w>>7&^(w>>6)&lowBits) }

// isASCII32 reports whether p[:32] is ASCII.
func isASCII32(p []byte) bool {
	a, b := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
	c, d := binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:])
	return (a|b|c|d)&highBits == 0
}

func isStart(b byte) bool { return b&0xC0 != 0x80 }

// cutRunes returns how many bytes of p, which is valid UTF-8, its first limit
// characters take, and how many characters those are.
func cutRunes(p []byte, limit int) (n, chars int) {
	for len(p)-n >= 32 && chars+32 <= limit && isASCII32(p[n:]) {
		n, chars = n+32, chars+32
	}
	for len(p)-n >= 8 {
		c := runeStarts(binary.LittleEndian.Uint64(p[n:]))
		if chars+c > limit {
			break
		}
		n, chars = n+8, chars+c
	}
	for ; n < len(p); n++ {
		if isStart(p[n]) {
			if chars == limit {
				return n, chars
			}
			chars++
		}
	}
	return n, chars
}

// advance is cutRunes over a text with markers: their digests are not counted,
// and one that stands at the cut is left behind it.
func advance(p []byte, limit int) (n, chars int) {
	for chars < limit && n < len(p) {
		if p[n] == markerByte {
			n += markerLen
		}
		run := p[n:min(len(p), n+utf8.UTFMax*(limit-chars))]
		if m := bytes.IndexByte(run, markerByte); m >= 0 {
			run = run[:m]
		}
		size, runes := cutRunes(run, limit-chars)
		n, chars = n+size, chars+runes
	}
	return n, chars
}

// appendVisible appends text to dst without the digests of its markers.
func appendVisible(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		if text[i] == markerByte {
			i += markerLen
			continue
		}
		_, n := utf8.DecodeRune(text[i:])
		dst = append(dst, text[i:i+n]...)
		i += n
	}
	return dst
}
