package advice

// Prompt is what is known of a prompt without its text.
type Prompt struct {
	// Chunks are chained hashes, as in package trace.
	Chunks []uint64
	Tokens int
	// Who is the session or the tenant, "" if that is not known.
	Who string
}

const (
	// longChunks is how many chunks a prompt has that could share something worth
	// it: 512 tokens. Shorter ones are often different from their first word on.
	longChunks = 8
	// fewPrompts is how many long ones are too few to see a rule in them.
	fewPrompts = 100
	// aloneShare is the share of the long prompts that begin like no other, from
	// which on something must be in front of them: of prompts that have anything to do
	// with each other, even without a system prompt, a tenth comes again (a retry, a
	// conversation's next turn).
	aloneShare = 0.9
	// returns is how many requests one of a session or tenant is expected to send
	// for its prompts to begin alike.
	returns = 3
)

// Loners is what prompts that begin like no other are among all.
type Loners struct {
	// Long are the prompts looked at, Alone those that begin like no other.
	Long, Alone int
	// Returning says that the same sessions or tenants send them, again and again.
	Returning bool
}

// Suspicious reports whether something is likely to be in front of the prompts that
// makes each of them different.
func (l Loners) Suspicious() bool {
	return l.Long >= fewPrompts && float64(l.Alone) >= aloneShare*float64(l.Long)
}

// FindLoners looks for prompts that begin like no other.
func FindLoners(prompts []Prompt) (l Loners) {
	first, who := make(map[uint64]int), make(map[string]int)
	for _, p := range prompts {
		if len(p.Chunks) > 0 {
			first[p.Chunks[0]]++
		}
	}
	named := 0
	for _, p := range prompts {
		if len(p.Chunks) < longChunks {
			continue
		}
		l.Long++
		if first[p.Chunks[0]] == 1 {
			l.Alone++
		}
		if p.Who != "" {
			named++
			who[p.Who]++
		}
	}
	l.Returning = named > 0 && named >= returns*len(who)
	return l
}

// Distinct returns how many tokens the chunks of all prompts have, each counted
// once: what a cache would have to hold to hold them all.
func Distinct(prompts []Prompt, chunkTokens int) int64 {
	seen := make(map[uint64]struct{})
	for _, p := range prompts {
		for _, c := range p.Chunks {
			seen[c] = struct{}{}
		}
	}
	return int64(len(seen)) * int64(chunkTokens)
}
