package prefix

import "bytes"

// beginSkip skips the container that begins at the next byte. If it belongs to
// a digest, its bytes enter that as they are.
func (s *Scanner) beginSkip(hash bool) {
	s.state, s.skipDepth, s.skipHash = stateSkip, 0, hash
	s.inQuote, s.odd = false, false
	s.hashLeft, s.hashed = maxInt, false
}

// skipContainer reads on to the end of the container that is being skipped.
func (s *Scanner) skipContainer(p []byte) int {
	n, closed := s.skipTo(p)
	switch {
	case closed && s.skipHash:
		s.valueEnd(mix(tagDeep, s.digest(p[:n])))
	case closed:
		s.valueEnd(0)
	case s.skipHash:
		s.absorb(p[:n])
	}
	return n
}

// skipTo returns how many bytes belong to the container, and whether it ends.
// Looking at a block is worth it neither for a small container nor again behind
// each backslash: the bytes up to slow are looked at one by one.
func (s *Scanner) skipTo(p []byte) (n int, closed bool) {
	slow := 0
	if s.skipDepth == 0 {
		slow = blockLen / 2
	}
	for n < len(p) && !closed {
		var size int
		switch {
		case s.inQuote:
			size = s.skipQuoted(p[n:])
		case n < slow || len(p)-n < blockLen:
			size, closed = s.skipBytes(p[n:min(len(p), max(slow, n+blockLen))])
		default:
			size, closed = s.skipBlocks(p[n:])
			if next := n + size; next < len(p) && p[next] == '\\' {
				slow = next + blockLen
			}
		}
		n += size
	}
	return n, closed
}

// skipBytes skips up to the next string or the end of the container.
func (s *Scanner) skipBytes(p []byte) (n int, closed bool) {
	for i, c := range p {
		switch c {
		case '"':
			s.inQuote = true
			return i + 1, false
		case '{', '[':
			s.skipDepth++
		case '}', ']':
			if s.skipDepth--; s.skipDepth == 0 {
				return i + 1, true
			}
		}
	}
	return len(p), false
}

// skipQuoted reads on to the end of a string within what is being skipped. Most
// are names: shorter than a search is worth.
func (s *Scanner) skipQuoted(p []byte) int {
	const short = 16
	i := 0
	if s.odd {
		s.odd = false
		i = 1
	}
	for ; i < min(len(p), short); i++ {
		switch p[i] {
		case '"':
			s.inQuote = false
			return i + 1
		case '\\':
			i++
		}
	}
	if i > len(p) {
		s.odd = true
		return len(p)
	}
	n, end := s.toQuote(p[i:])
	s.inQuote = !end
	return i + n
}

// skipString reads on to the end of the string that is being skipped.
func (s *Scanner) skipString(p []byte) int {
	n, end := s.toQuote(p)
	if end {
		s.endString()
	}
	return n
}

// toQuote returns the number of bytes up to and with the quote that ends a
// string, or len(p) and false. Only the backslashes in front of quotes matter.
func (s *Scanner) toQuote(p []byte) (n int, end bool) {
	if s.odd {
		s.odd = false
		n = 1
	}
	for {
		i := bytes.IndexByte(p[n:], '"')
		if i < 0 {
			s.odd = oddBackslashes(p[n:])
			return len(p), false
		}
		escaped := oddBackslashes(p[n : n+i])
		n += i + 1
		if !escaped {
			return n, true
		}
	}
}

// oddBackslashes reports whether p ends in an odd number of backslashes.
func oddBackslashes(p []byte) bool {
	n := len(p)
	for n > 0 && p[n-1] == '\\' {
		n--
	}
	return (len(p)-n)%2 == 1
}
