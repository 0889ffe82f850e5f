package replica

import (
	"errors"
	"fmt"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// Params describe a replica. The zero value of a field means its default.
type Params struct {
	// Name is what the x-replica response header says. A fleet sets it to the
	// replica's address.
	Name string
	// Engine is the speed and the cache size; default [engine.Llama70B].
	Engine engine.Params
	// TimeScale divides every time of the engine: 10 is ten times faster than
	// real. Times set by control headers are not scaled. Default 1. The work that
	// is not slept, some milliseconds for a 32 KiB prompt, is not scaled either:
	// above 5 or so it shows in the times.
	TimeScale float64
	// Models are the names served; another name is answered with 404. Default:
	// any name.
	Models []string
	// OutputTokens is the length of an answer when the request sets no limit.
	// Default 64.
	OutputTokens int
}

func (p Params) withDefaults() Params {
	if p.Engine == (engine.Params{}) {
		p.Engine = engine.Llama70B()
	}
	if p.TimeScale == 0 {
		p.TimeScale = 1
	}
	if p.OutputTokens == 0 {
		p.OutputTokens = 64
	}
	if p.Name == "" {
		p.Name = "replica"
	}
	return p
}

func (p Params) validate() error {
	errs := []error{p.Engine.Validate()}
	if !(p.TimeScale > 0) {
		errs = append(errs, fmt.Errorf("TimeScale %v: want more than 0", p.TimeScale))
	}
	if p.OutputTokens < 1 {
		errs = append(errs, fmt.Errorf("OutputTokens %d: want 1 or more", p.OutputTokens))
	}
	return errors.Join(errs...)
}
