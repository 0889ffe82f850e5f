package sim

import (
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// running is a job on its way.
type running struct {
	job     *Job
	request *engine.Request
	router  int
	replica int
	client  int // of a closed loop
	arrived time.Duration
	picked  time.Duration
	started bool // has its first token
}

// replica is one engine of the fleet.
type replica struct {
	engine *engine.Scheduler
	byID   map[*engine.Request]*running
	// stepEnds is when the step in progress ends, or never.
	stepEnds time.Duration
	// up says that it is chosen, alive that it works.
	up, alive bool
	weight    int

	requests, prefill int64 // of this replica, in all
}

const never = time.Duration(1<<63 - 1)

func (r *replica) begin(now, leap time.Duration) {
	if r.stepEnds != never {
		return
	}
	if d, ok := r.engine.Begin(leap); ok {
		r.stepEnds = now + d
	}
}
