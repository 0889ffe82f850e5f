package engine

// Cached returns how many tokens of a prompt need no prefill now. Use is not
// marked.
func (s *Scheduler) Cached(p Prompt) int {
	r := Request{Blocks: p.Blocks}
	present, _ := s.blocks.match(r.hitable(max(p.Tokens-1, 0), s.params.BlockTokens))
	return present * s.params.BlockTokens
}

// Store puts the full blocks of a prompt into the cache, as the last used ones,
// without the time of computing them. Of a prompt larger than what no running
// request pins, only the beginning is stored.
func (s *Scheduler) Store(p Prompt) {
	r := Request{Blocks: p.Blocks}
	hashes := r.hitable(p.Tokens, s.params.BlockTokens)
	present, free := s.blocks.match(hashes)
	needed := min(len(hashes), present+s.blocks.free-free)
	r.held, r.published = s.blocks.reserve(hashes[:present], needed), present
	s.publish(&r, needed*s.params.BlockTokens)
	s.free(&r)
}

// ClearCache forgets what can be hit; running requests keep their blocks. (What
// did not fit before does not fit now.)
func (s *Scheduler) ClearCache() { s.blocks.clear() }
