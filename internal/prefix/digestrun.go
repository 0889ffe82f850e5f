package prefix

import "github.com/cespare/xxhash/v2"

// digestRun reads on in containers of which only the digests count, as long as what
// is in them is simple. It stops in front of anything else.
func (s *Scanner) digestRun(p []byte) (n int) {
	f := s.top()
	for n < len(p) {
		if !f.array {
			size := s.digestName(f, p[n:])
			if n += size; size == 0 || n == len(p) {
				return n
			}
		}
		_, size, digest := s.simple(p[n:], true)
		switch next := n + size; {
		case size > 0 && next < len(p):
			size, f = s.digestEnd(f, digest, p[next:])
			if n = next + size; f == nil {
				return n
			}
		case size == 0 && isOpening(p[n]) && s.depth < MaxDepth:
			f = s.push(viewHash, p[n] == '[', true)
			f.elem = viewHash
			n++
		default:
			return n
		}
	}
	return n
}

// digestName reads a name and its colon.
func (s *Scanner) digestName(f *frame, p []byte) int {
	if p[0] != '"' {
		return 0
	}
	name, n := s.wholeString(p)
	if n == 0 || n == len(p) || p[n] != ':' || string(name) == "cache_control" {
		return 0
	}
	f.name, f.drop = xxhash.Sum64(name), false
	s.state, s.view = stateValue, viewHash
	return n + 1
}

// digestEnd reads what follows a value with a digest: the ends of containers, and
// a comma. It returns the container to go on in, or nil if there is something else.
func (s *Scanner) digestEnd(f *frame, digest uint64, p []byte) (n int, in *frame) {
	for {
		if f.array {
			f.sum = mix(f.sum, digest)
		} else {
			s.addMember(f, member{f.name, digest})
		}
		s.state = stateAfter
		if n == len(p) {
			return n, nil
		}
		switch c := p[n]; {
		case c == ',' && f.array:
			s.state, s.view = stateValue, viewHash
			return n + 1, f
		case c == ',':
			s.state = stateKey
			return n + 1, f
		case c != ']' && f.array, c != '}' && !f.array:
			return n, nil
		}
		n++
		digest = s.digestOf(f)
		s.depth--
		if f = s.top(); f.view != viewHash {
			s.valueEnd(digest)
			return n, nil
		}
	}
}
