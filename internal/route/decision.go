package route

import "fmt"

// Reason says in one word why an endpoint was chosen.
type Reason uint8

// The reasons of a decision.
const (
	// NoEndpoints: the membership is empty, nothing could be chosen.
	NoEndpoints Reason = iota
	// Undecided: Envoy sent the request on before an endpoint was chosen. Pick
	// never gives this reason.
	Undecided
	// SingleCandidate: only one endpoint can serve, nothing was hashed.
	SingleCandidate
	// ByRandom: the strategy is RANDOM.
	ByRandom
	// ByLeastOutstanding: the strategy is LEAST_OUTSTANDING_REQUESTS, or it is
	// KV_AWARE and no endpoint is warm or those that are have too much to do.
	ByLeastOutstanding
	// NoKey: PREFIX_AWARE or KV_AWARE, but the request has no text to make a key of; the
	// least loaded endpoint was chosen.
	NoKey
	// Home: the key's first home had room.
	Home
	// Overflow: the home was at its bound; the next home with room was chosen.
	Overflow
	// WarmElsewhere: an endpoint that is no home of the prefix has served it before,
	// and costs less. Only with the automatic prefix length, as the next.
	WarmElsewhere
	// Relief: the homes have too much to prefill, or in their memory.
	Relief
	// Warm: the strategy is KV_AWARE, and the endpoint has served the request's
	// beginning before.
	Warm
	// Saturated: every endpoint was at its bound; the least loaded was chosen.
	Saturated
)

var reasonNames = [...]string{
	NoEndpoints:        "no_endpoints",
	Undecided:          "undecided",
	SingleCandidate:    "single_candidate",
	ByRandom:           "random",
	ByLeastOutstanding: "least_outstanding",
	NoKey:              "no_key",
	Home:               "home",
	Overflow:           "overflow",
	WarmElsewhere:      "warm_elsewhere",
	Relief:             "relief",
	Warm:               "warm",
	Saturated:          "saturated",
}

// Reasons returns all reasons in order, for those who prepare something for each.
func Reasons() []Reason {
	all := make([]Reason, len(reasonNames))
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// String returns the name that spans and metrics use.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// MaxChoices is how many endpoints a decision names: the chosen one and those
// that Envoy tries next.
const MaxChoices = 3

// NoRank is the rank of an endpoint that was not chosen by its order for a key.
const NoRank = -1

// Decision is where a request goes and why.
type Decision struct {
	Strategy Strategy
	Reason   Reason
	// Key is the request's prefix key; valid if Keyed.
	Key   uint64
	Keyed bool
	// Chosen is the address of the endpoint whose slot is reserved; empty if
	// there is none.
	Chosen string
	// Rank is the chosen endpoint's position among the key's homes, 0 for the
	// first, or NoRank.
	Rank int
	// Depth is how many characters of the prompt the homes depend on, 0 for all of
	// them; Share the part of the recent requests that begins with these, 0 to 1;
	// HomeCount how many homes they have; Warm how many characters of this prompt
	// the chosen endpoint has served before. All are 0 with a fixed prefix length, and
	// all but Warm with KVAware.
	Depth     int
	Share     float64
	HomeCount int
	Warm      int
	// Load is how many requests were outstanding at the chosen endpoint before
	// this one, HomeLoad at the first home.
	Load, HomeLoad int64
	// Bound is how many requests may be outstanding at the chosen endpoint; 0 if
	// the strategy has no bound.
	Bound int64
	// Candidates is how many endpoints could have been chosen.
	Candidates int
	// AdapterSet is how many endpoints the request's adapter has, if it is for one.
	AdapterSet int
	// Membership is the version of the membership decided on.
	Membership uint64

	homes, choices [MaxChoices]string
}

// WarmKnown reports whether Warm says something: whether it was looked up how much of
// this prompt the chosen endpoint has served before. It is not with a fixed prefix
// length, without a key, and where there was nothing to choose.
func (d *Decision) WarmKnown() bool {
	return d.Keyed && (d.Strategy == KVAware || d.HomeCount > 0)
}

// Homes returns the first homes of the key in order, at most MaxChoices; none
// if nothing was hashed.
func (d *Decision) Homes() []string { return trim(&d.homes) }

// Choices returns the chosen endpoint and those to try after it, in order. The
// choices after the first are the homes that follow; nothing is reserved there.
func (d *Decision) Choices() []string { return trim(&d.choices) }

func trim(list *[MaxChoices]string) []string {
	n := 0
	for n < len(list) && list[n] != "" {
		n++
	}
	return list[:n]
}

// choose sets the chosen endpoint and the further choices: the alternatives in
// their order, without the chosen one.
func (d *Decision) choose(address string, alternatives ...[]string) {
	d.Chosen = address
	d.choices = [MaxChoices]string{address}
	n := 1
	for _, list := range alternatives {
		for _, a := range list {
			if a != address && n < MaxChoices {
				d.choices[n] = a
				n++
			}
		}
	}
}

// chooseInOrder is choose for an endpoint at d.Rank of the key's order. The
// homes behind it come first: a retry goes on along the order before it tries
// a fuller home again.
func (d *Decision) chooseInOrder(address string, homes []string) {
	k := min(d.Rank+1, len(homes))
	d.choose(address, homes[k:], homes[:k])
}
