package prefix

import "bytes"

// beginSkip skips the container that begins at the next byte. If it belongs to
// a digest, its bytes enter that as they are.
func (s *Scanner) beginSkip(hash bool) {
	s.state, s.skipDepth, s.skipHash = stateSkip, 0, hash
	s.inQuote, s.odd = false, false
	if hash {
		s.sum.Reset()
	}
}

// skipContainer reads on to the end of the container that is being skipped.
func (s *Scanner) skipContainer(p []byte) int {
	n, closed := s.skipTo(p)
	if s.skipHash {
		_, _ = s.sum.Write(p[:n])
	}
	if closed {
		s.valueEnd(mix(tagDeep, s.sum.Sum64()))
	}
	return n
}

// skipTo returns how many bytes belong to the container, and whether it ends.
func (s *Scanner) skipTo(p []byte) (n int, closed bool) {
	for n < len(p) {
		if s.inQuote {
			n += s.skipQuoted(p[n:])
			continue
		}
		if s.skipDepth > 0 && len(p)-n >= blockLen {
			size, closed := s.skipBlocks(p[n:])
			n += size
			if closed {
				return n, true
			}
			if s.inQuote || n == len(p) {
				continue
			}
		}
		switch p[n] {
		case '"':
			s.inQuote = true
		case '{', '[':
			s.skipDepth++
		case '}', ']':
			s.skipDepth--
			closed = s.skipDepth == 0
		}
		if n++; closed {
			return n, true
		}
	}
	return n, false
}

// skipQuoted reads on to the end of a string within what is being skipped. Most
// are names: shorter than a search is worth.
func (s *Scanner) skipQuoted(p []byte) int {
	const short = 16
	if !s.odd {
		for i, c := range p[:min(len(p), short)] {
			if c == '"' {
				s.inQuote = false
				return i + 1
			}
			if c == '\\' {
				break
			}
		}
	}
	n, end := s.toQuote(p)
	s.inQuote = !end
	return n
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
