// Package view is what the live page, `warmpath top` and `warmpath explain --from` show:
// the values of the JSON that the admin listener serves below /api. There is no text of
// a prompt in it, and nothing that a tenant calls itself.
package view

import "time"

// Snapshot is the state of one warmpath at one moment. A stream sends it whole once, and
// then again and again with only those seconds and decisions that are new or different;
// Reasons and Config only when they are different.
type Snapshot struct {
	Version string    `json:"version,omitempty"`
	At      time.Time `json:"at"`
	// Second is the present second since the start, on the scale of Seconds.
	Second int64 `json:"second"`
	// Position is what to ask for to have what is new after this snapshot.
	Position uint64 `json:"position"`
	// Reasons names the columns of [Second].ByReason.
	Reasons   []string   `json:"reasons,omitempty"`
	Pools     []Pool     `json:"pools"`
	Warnings  []Warning  `json:"warnings"`
	Seconds   []Second   `json:"seconds"`
	Decisions []Decision `json:"decisions"`
	// Config is the effective configuration as YAML; it has paths of secrets and no
	// secrets.
	Config     string `json:"config,omitempty"`
	Generation int    `json:"generation"`
}

// Pool is a set of endpoints and how they are chosen.
type Pool struct {
	Name                 string `json:"name"`
	Strategy             string `json:"strategy"`
	PrefixLength         string `json:"prefixLength"`
	ConcurrencyThreshold string `json:"concurrencyThreshold"`
	Membership           string `json:"membership"`
	// What follows is of the last minute. Expected is the hit rate by what the router
	// knows of the caches, Actual what the engines said in the answers that were looked at,
	// where these are few in the last hundred of each endpoint; nil where nobody knows.
	Requests int64      `json:"requests"`
	Overflow float64    `json:"overflow"`
	Expected *float64   `json:"expected,omitempty"`
	Actual   *float64   `json:"actual,omitempty"`
	Hot      []Hot      `json:"hot"`
	Members  []Endpoint `json:"members"`
	Trials   []Trial    `json:"trials,omitempty"`
}

// Trial is a policy on trial, and what has come of it and of the pool's own since it is;
// of a split since its share is what it is, and of prompts only.
type Trial struct {
	// Kind is shadow, which decides without effect, or split.
	Kind string `json:"kind"`
	// Share is the part of the conversations that it is to decide on.
	Share                float64 `json:"share"`
	Strategy             string  `json:"strategy"`
	PrefixLength         string  `json:"prefixLength"`
	ConcurrencyThreshold string  `json:"concurrencyThreshold"`
	// Main is of what the pool's own policy did: with a shadow with the same requests, with
	// a split with the others. Tried is of the policy on trial.
	Main  Outcome `json:"main"`
	Tried Outcome `json:"tried"`
	// Moved is the share of the requests that a shadow would have sent elsewhere.
	Moved *float64 `json:"moved,omitempty"`
}

// Outcome is what came of a policy.
type Outcome struct {
	Requests uint64 `json:"requests"`
	// Expected is the hit rate, by the one rule for all strategies; nil if no prompt was
	// read.
	Expected *float64 `json:"expected,omitempty"`
	Overflow float64  `json:"overflow"`
	// BusiestOverMean is what ran at the busiest endpoint over what ran at the mean one;
	// nil with a split, whose arms share the endpoints.
	BusiestOverMean *float64 `json:"busiestOverMean,omitempty"`
}

// Endpoint is a model server.
type Endpoint struct {
	Address string `json:"address"`
	// State is healthy, unhealthy, draining, or gone while requests still run there;
	// Cause why, if that is known.
	State string `json:"state"`
	Cause string `json:"cause,omitempty"`
	Zone  string `json:"zone,omitempty"`
	// Weight is its part of the requests against the others', as the membership has it.
	Weight uint32 `json:"weight"`
	// Outstanding requests run there, Others of them from other routers, as these told;
	// Bound is how many may, 0 for one that is not chosen.
	Outstanding int64 `json:"outstanding"`
	Others      int64 `json:"others,omitempty"`
	Bound       int64 `json:"bound"`
	// What follows is of the last minute: Share of the pool's requests, Overflow the
	// part of its own that came because of others' load.
	Requests int64    `json:"requests"`
	Share    float64  `json:"share"`
	Overflow float64  `json:"overflow"`
	Expected *float64 `json:"expected,omitempty"`
	Actual   *float64 `json:"actual,omitempty"`
	// FirstTokenWarm, FirstTokenCold and FirstTokenUnknown are the mean times to the first
	// content, in seconds, of answers that were looked at: where at least half of the
	// prompt was expected to be cached, where less was, and where nothing is expected
	// because the policy remembers nothing. 0 where there was no such answer.
	FirstTokenWarm    float64 `json:"firstTokenWarm,omitempty"`
	FirstTokenCold    float64 `json:"firstTokenCold,omitempty"`
	FirstTokenUnknown float64 `json:"firstTokenUnknown,omitempty"`
}

// Hot is a beginning that many recent prompts have in common.
type Hot struct {
	// Key is its hash, 16 hex digits, Depth its length in characters; 0 for all that
	// was read.
	Key   string  `json:"key"`
	Depth int     `json:"depth"`
	Share float64 `json:"share"`
	// Homes is over how many endpoints its requests are spread, Holders who has served
	// it.
	Homes   int      `json:"homes"`
	Holders []string `json:"holders"`
}

// Warning is something that an operator should look at, and what to do about it.
type Warning struct {
	// Kind is skew, overflow or split.
	Kind   string `json:"kind"`
	Pool   string `json:"pool"`
	Text   string `json:"text"`
	Advice string `json:"advice"`
}

// Second is what was decided in one second, and what failed in it.
type Second struct {
	// Second counts from the start.
	Second   int64    `json:"second"`
	Requests uint32   `json:"requests"`
	ByReason []uint32 `json:"byReason"`
	// Failed is how many answers were a 5xx, whenever their requests came.
	Failed uint32 `json:"failed"`
	// Cached characters, of Characters, were expected to be in the chosen endpoint's
	// cache.
	Cached     uint64 `json:"cached"`
	Characters uint64 `json:"characters"`
	// P50 and P99 are how long decisions took, in microseconds.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Overflowed is how many of its requests went where they did because of the load; reasons
// are those of the snapshot.
func (s Second) Overflowed(reasons []string) (n uint32) {
	for i, count := range s.ByReason {
		if i < len(reasons) && Overflow(reasons[i]) {
			n += count
		}
	}
	return n
}

// Overflow reports whether a reason is that the endpoints where a request belongs had
// too much to do.
func Overflow(reason string) bool {
	return reason == "overflow" || reason == "relief" || reason == "saturated"
}

// Decision is one of the last ones.
type Decision struct {
	// ID counts the decisions since the start.
	ID        uint64    `json:"id"`
	At        time.Time `json:"at"`
	RequestID string    `json:"requestId,omitempty"`
	// Probe is the probe's id, where it was asked for by that.
	Probe string `json:"probe,omitempty"`
	Model string `json:"model,omitempty"`
	Pool  string `json:"pool"`
	// Arm is whose policy decided while the pool is split: main or split.
	Arm      string   `json:"arm,omitempty"`
	Strategy string   `json:"strategy"`
	Reason   string   `json:"reason"`
	Chosen   string   `json:"chosen"`
	Homes    []string `json:"homes,omitempty"`
	Rank     int      `json:"rank"` // -1 if it was not chosen by an order
	Load     int64    `json:"load"`
	Bound    int64    `json:"bound"`
	Key      string   `json:"key,omitempty"`
	Depth    int      `json:"depth"`
	// Cached characters, of Characters, were expected in the cache; -1 if nobody knows.
	Cached     int `json:"cached"`
	Characters int `json:"characters"`
	// Micros is how long the decision took.
	Micros   float64 `json:"micros"`
	Status   int     `json:"status,omitempty"` // 0 while there is no response
	Served   string  `json:"served,omitempty"`
	Missed   bool    `json:"missed,omitempty"`
	Attempts int     `json:"attempts,omitempty"`
	Ended    bool    `json:"ended,omitempty"`
	// Sentence is the decision in words.
	Sentence string `json:"sentence"`
}

// Explanation is what a running server would decide on a request body.
type Explanation struct {
	API          string   `json:"api"`
	Kind         string   `json:"kind"` // text, raw or none
	Pool         string   `json:"pool"`
	TextChars    int      `json:"textChars"`
	TenantSource string   `json:"tenantSource"`
	Notes        []string `json:"notes"`
	// Decision has no id and no time, and was never made.
	Decision Decision `json:"decision"`
	// Homes are the first homes and their loads.
	Homes []Home `json:"homes"`
}

// Home is an endpoint to which a prompt belongs.
type Home struct {
	Address string `json:"address"`
	Load    int64  `json:"load"`
	Bound   int64  `json:"bound"`
}
