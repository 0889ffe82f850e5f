package sim

import (
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
)

// ChunkTokens is the granularity of a prompt in the simulator: 64 tokens of 4
// characters, the levels of the router's chained key.
const ChunkTokens = 64

// Job is one request.
type Job struct {
	// At is when it arrives, from the beginning of the run; not used by a closed
	// loop.
	At time.Duration
	// Tokens and Output are the lengths of prompt and answer, each at least 1.
	Tokens, Output int
	// Chunks has a chained hash for each whole chunk of the prompt: two prompts
	// have the same hash at a chunk if they are the same up to its end.
	Chunks []uint64
	// Whole is a hash of the whole prompt.
	Whole uint64
}

// NewJob returns a job of these lengths for replicas with a cache of so many
// tokens, and whether it had to be cut: one that does not fit would never run.
// The number tells prompts apart that have no whole chunk.
func NewJob(number int, at time.Duration, tokens, output int, chunks []uint64, cache int) (j Job, cut bool) {
	j = Job{At: at, Tokens: max(tokens, 1), Output: max(output, 1), Chunks: chunks}
	if room := cache - ChunkTokens; j.Tokens+j.Output > room {
		cut = true
		j.Output = min(j.Output, max(room/4, 1))
		j.Tokens = max(min(j.Tokens, room-j.Output), 1)
		j.Chunks = j.Chunks[:min(len(j.Chunks), j.Tokens/ChunkTokens)]
	}
	whole := fmt.Sprint(number)
	if n := len(j.Chunks); n > 0 {
		whole = fmt.Sprint(j.Chunks[n-1], j.Tokens)
	}
	j.Whole = xxhash.Sum64String(whole)
	return j, cut
}

// key is that of the first tokens of the prompt, or of all of it.
func (j *Job) key(tokens int) uint64 {
	if n := tokens / ChunkTokens; n >= 1 && n <= len(j.Chunks) {
		return j.Chunks[n-1]
	}
	return j.Whole
}

// Event changes the fleet.
type Event struct {
	At   time.Duration
	Kind EventKind
	// Replica is the number of an existing one; an added one gets the next.
	Replica int
}

// EventKind is what happens to a replica.
type EventKind uint8

// The kinds of events.
const (
	// Add adds a replica with an empty cache.
	Add EventKind = iota
	// Remove lets a replica finish what it has, and gives it nothing more.
	Remove
	// Crash loses what runs: the requests are sent again at once, elsewhere.
	Crash
	// look lets the autoscaler look.
	look
)
