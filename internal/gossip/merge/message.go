// Package merge makes one picture of what several routers tell of their endpoints:
// how many requests the others have outstanding at each, and what prefill they have
// given it. It is pure: messages and times come in as values.
//
// A message states what is, it never says what to add, so one that is lost, comes
// twice or comes late does no lasting harm; and it is only heard for endpoints that
// are members here, so no message can make the picture grow.
package merge

import "github.com/cespare/xxhash/v2"

// Bounds of what is believed. A router that is at these limits is misused or lies.
const (
	// MaxPeers is how many other routers are listened to at once.
	MaxPeers = 64
	// MaxOutstanding is the largest count believed, of one router at one endpoint.
	MaxOutstanding = 1_000_000
	// MaxEndpoints is how many endpoints one message may have.
	MaxEndpoints = 128
	// MaxLevels is how many levels all placements of one message may have.
	MaxLevels = 1024
	// maxGiven is the most work believed to be new in one message: an hour, in µs.
	maxGiven = 3_600_000_000
)

const (
	// SilentAfter is after how much silence, in ns, what a router told counts no
	// more: it has died or is cut off.
	SilentAfter = 700_000_000
	// forgetAfter is after how much silence, in ns, nothing is remembered of it. Until
	// then it may be cut off and send requests all the same.
	forgetAfter = 600_000_000_000
	// unconfirmedAfter is after how long, in ns, a count that was not repeated counts
	// no more: all that is not 0 is told every second, and two of these may be lost.
	unconfirmedAfter = 2_500_000_000
)

// Key is what messages call an endpoint: the xxhash64 of its address. Routers of all
// versions have to agree on it.
func Key(address string) uint64 { return xxhash.Sum64String(address) }

// Message is what one router tells.
type Message struct {
	// Router is the sender's random number, not 0.
	Router uint64
	// Sequence is larger in every message of the sender.
	Sequence uint64
	// Endpoints are some of the sender's.
	Endpoints []Endpoint
	// Placements are some of the requests that it has sent to them.
	Placements []Placement
	// Leaving says that the sender ends.
	Leaving bool
}

// Endpoint is one endpoint as its sender knows it.
type Endpoint struct {
	// Key is that of the address.
	Key uint64
	// Outstanding is how many requests of the sender run there.
	Outstanding int64
	// Given is the prefill that the sender has sent there since its start, by its
	// own account, in µs.
	Given int64
}

// Placement is a request that the sender has sent to an endpoint.
type Placement struct {
	// Key is that of the endpoint's address.
	Key uint64
	// Levels are those of the prompt's chained key that the endpoint has not served
	// before, as far as the sender knows.
	Levels []uint64
}
