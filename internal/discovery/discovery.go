// Package discovery turns a source of membership into [fleet.Set] values: a list
// from the configuration, a watched file, a name server's answers, or what is
// given over HTTP. A source never takes the membership away because of a mistake
// in it.
package discovery

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/fleet"
)

// Update is the state of a source after one reading.
type Update struct {
	// Set is the membership to use now: of this reading, or, with Err, the last
	// good one, which is empty when there was none.
	Set fleet.Set
	// Err is why the source as a whole was refused; nil when Set is new.
	Err error
	// Problems are the faults of single entries, which were left out. It is set
	// whether or not the rest was taken over.
	Problems config.Problems
	// Kept are the addresses that are in Set in an earlier form, because their
	// present entry has a fault.
	Kept []string
	// Warning is what is odd about a reading that was taken over; empty when
	// nothing is.
	Warning string
	// At is the time of this reading.
	At time.Time
	// LastGood is the time of the last reading that Set came from; zero when
	// there was none.
	LastGood time.Time
}

// Source reports a membership and its changes.
type Source interface {
	// Run reports the present membership at once, if there is one, and every later
	// change, one call at a time, until ctx ends; it then returns the context's error.
	Run(ctx context.Context, report func(Update)) error
}

// New returns the source that the configuration names; configPath is where that
// configuration was read from.
func New(m config.Membership, configPath string) Source {
	switch {
	case m.File != "":
		return &File{Path: m.Path(configPath)}
	case m.DNS != nil:
		return &DNS{DNS: *m.DNS}
	case m.API != nil:
		return NewAPI(m.API.Path(configPath))
	}
	set, _ := fleet.NewSet(m.Static) // decoding refused duplicates
	return Static{Set: set}
}

// Static is a membership that never changes.
type Static struct {
	Set fleet.Set
}

// Run reports the set once.
func (s Static) Run(ctx context.Context, report func(Update)) error {
	now := time.Now()
	report(Update{Set: s.Set, At: now, LastGood: now})
	<-ctx.Done()
	return ctx.Err()
}
