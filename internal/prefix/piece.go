package prefix

import "bytes"

// beginPiece begins a piece of text in the current slot.
func (s *Scanner) beginPiece() {
	t := s.slot
	t.fresh = true
	s.pieceStart = len(t.buf)
	s.first = s.api == Messages && t == &s.slots[0] && !t.cur.any && !t.cur.skipped
}

// endPiece ends it, and drops it if it is the block that model servers strip.
func (s *Scanner) endPiece() {
	t := s.slot
	t.fresh = false
	if s.first && t.cur.any && bytes.HasPrefix(t.buf[s.pieceStart:], []byte(billingHeader)) {
		t.buf = t.buf[:s.pieceStart]
		t.cur = branch{skipped: true}
	}
	s.first = false
}
