package advice

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxTexts is how many prompts are looked at, headBytes how much of each. They
	// bound memory and time; what is wrong with prompts is wrong with most of them.
	maxTexts  = 400
	headBytes = 8192
	// before is how many of the prompts before it each is compared with: those of
	// several applications are mixed.
	before = 8
	// near is how close to the beginning a piece has to be that defeats the cache of
	// nearly all of a prompt, in bytes.
	near = 1024
	// shortPiece is the longest piece that is taken for a time or an id; longer ones
	// are what is asked.
	shortPiece = 128
	// commonRest is how much has to be the same behind it. Less is a template's
	// end, of which little could be won.
	commonRest = 1024
	// anchor is how much has to be the same for a place to be the same.
	anchor = 24
	// shareOfTexts is the share of the prompts from which on a fault is told.
	shareOfTexts = 0.2
)

// Texts collects the beginnings of prompts and finds what defeats a cache in them.
// The zero Texts is ready.
type Texts struct{ heads []string }

// Add takes the next prompt.
func (t *Texts) Add(text string) {
	if len(t.heads) < maxTexts {
		t.heads = append(t.heads, strings.Clone(text[:min(len(text), headBytes)]))
	}
}

// Given reports whether there were any.
func (t *Texts) Given() bool { return len(t.heads) > 0 }

// Volatile is a piece near the beginning of prompts that is different each time,
// although nearly everything behind it is the same.
type Volatile struct {
	// Character is where it begins, counted from 0: the middle one of all found.
	Character int
	// Share is the share of the prompts that have it, 0 to 1.
	Share float64
}

// Volatile finds such a piece, if a good part of the prompts has one.
func (t *Texts) Volatile() (v Volatile, found bool) {
	var at []int
	compared := 0
	for i, a := range t.heads {
		if i == 0 || len(a) < commonRest {
			continue
		}
		compared++
		if n, ok := differingFromAll(a, t.heads[max(i-before, 0):i]); ok {
			at = append(at, utf8.RuneCountInString(a[:n]))
		}
	}
	if len(at) == 0 || compared < 2 || float64(len(at)) < shareOfTexts*float64(compared) {
		return v, false
	}
	slices.Sort(at)
	return Volatile{Character: at[len(at)/2], Share: float64(len(at)) / float64(compared)}, true
}

// differingFromAll returns where the piece begins in which a prompt differs from
// others. One that begins like any of them has none.
func differingFromAll(a string, others []string) (at int, ok bool) {
	for _, b := range others {
		if common(a, b) >= near {
			return 0, false
		}
		if n, found := differing(a, b); found {
			at, ok = max(at, n), true
		}
	}
	return at, ok
}

// differing returns where a short piece begins in which two prompts differ, if
// what follows it is the same for long.
func differing(a, b string) (at int, ok bool) {
	at = common(a, b)
	if at == len(a) || at == len(b) {
		return 0, false
	}
	for skip := 0; skip <= shortPiece && at+skip+anchor <= len(a); skip++ {
		from := a[at+skip:]
		window := b[at:min(len(b), at+shortPiece+anchor)]
		i := strings.Index(window, from[:anchor])
		if i >= 0 && common(from, b[at+i:]) >= commonRest {
			return at, true
		}
	}
	return 0, false
}

// common returns how many bytes two texts share from the front.
func common(a, b string) (n int) {
	most := min(len(a), len(b))
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}
