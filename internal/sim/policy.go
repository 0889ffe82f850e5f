package sim

import (
	"time"

	"github.com/cespare/xxhash/v2"
)

// Query is a request as a router sees it.
type Query struct {
	Job *Job
	// Truth is the fleet as it really is, for oracles only.
	Truth Truth
	// Random is a random number, the decision's own.
	Random uint64
}

// Truth answers what no router can know.
type Truth interface {
	// Cached is how many tokens of the job's prompt a replica has now.
	Cached(replica int, j *Job) int
}

// Choice is a decision.
type Choice struct {
	Replica int
	// Key is what the home was chosen by, Home that home; Keyed if there is one.
	Key   uint64
	Home  int
	Keyed bool
	// Overflow says that the home had no room.
	Overflow bool
}

// Policy decides for one router. It sees what a router sees: its own decisions,
// first tokens and ends. It is used by one goroutine.
type Policy interface {
	// Members tells which replicas may be chosen, by number, in ascending order,
	// with their weights.
	Members(now time.Duration, replicas []Member)
	// Pick chooses one of the members.
	Pick(now time.Duration, q *Query) Choice
	// First tells that a request got its first token, Done that it ended. ttft is
	// the time from Pick.
	First(now time.Duration, replica int, j *Job, ttft time.Duration)
	Done(now time.Duration, replica int, j *Job)
}

// Member is a replica that may be chosen.
type Member struct {
	Replica int
	Weight  int
	// Address is what keys are hashed with.
	Address string
}

// address returns the address of a replica. Its characters look random, as those
// of a fleet may be; seeds have different ones.
func address(replica int, seed uint64) string {
	var text [8]byte
	for i := range text {
		h := xxhash.Sum64([]byte{byte(replica), byte(replica >> 8), byte(i)}) + (seed-1)*uint64(2*i+1)
		text[i] = "0123456789abcdef"[h%16]
	}
	return string(text[:]) + ":80"
}

// Maker makes the policy of one of several routers.
type Maker func(router, routers int) Policy
