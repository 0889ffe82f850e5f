package extproc

// CacheExpectation says what was expected of a prompt at the endpoint that was chosen for
// it.
type CacheExpectation uint8

// The expectations. Unknown is that of policies that do not remember who has served what.
const (
	CacheUnknown CacheExpectation = iota
	// CacheCold is less than half of the prompt.
	CacheCold
	// CacheWarm is at least half of the prompt, and something.
	CacheWarm
)

// CacheExpectations lists them all.
func CacheExpectations() []CacheExpectation {
	return []CacheExpectation{CacheUnknown, CacheCold, CacheWarm}
}

// String returns "unknown", "cold" or "warm".
func (e CacheExpectation) String() string {
	switch e {
	case CacheWarm:
		return "warm"
	case CacheCold:
		return "cold"
	default:
		return "unknown"
	}
}

// Expected returns how many of the prompt's characters the chosen endpoint was known to
// have served before, at most chars, and how many the prompt has. Where that was not
// looked up, or there is no prompt, nothing is known.
func (r *Record) Expected() (cached, chars int, known bool) {
	chars = max(r.PromptChars, r.KeyChars)
	if !r.Decision.WarmKnown() || chars == 0 {
		return 0, chars, false
	}
	return min(r.Decision.Warm, chars), chars, true
}

// CacheExpectation says what Expected comes to. It is of the chosen endpoint, so that
// nothing is expected where another has served, as after a retry.
func (r *Record) CacheExpectation() CacheExpectation {
	cached, chars, known := r.Expected()
	switch {
	case !known, r.Served != "" && r.Served != r.Decision.Chosen:
		return CacheUnknown
	case cached > 0 && 2*cached >= chars:
		return CacheWarm
	default:
		return CacheCold
	}
}
