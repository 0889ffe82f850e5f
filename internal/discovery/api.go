package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

// API is a membership that is given from outside, whole or endpoint by endpoint;
// [API.Register] serves it over HTTP. Its methods may be called at once.
type API struct {
	stateFile string
	changed   chan struct{} // has a buffer of 1: there is something to report

	// decoding is held while a body is decoded, which takes many times its size.
	decoding sync.Mutex

	mu    sync.Mutex
	set   fleet.Set
	known bool      // there has been a set
	at    time.Time // when it came
	// unreported: set has changed since the last report. refused is why what came
	// after it was not taken over.
	unreported bool
	refused    error
}

// ErrNoMembership says that none has been given yet.
var ErrNoMembership = errors.New("no membership has been given yet")

// NewAPI returns a membership that is kept in a state file over restarts, or
// without one (an empty path) begins without endpoints. A state file that cannot
// be read counts as none, and is reported.
func NewAPI(stateFile string) *API {
	a := &API{stateFile: stateFile, changed: make(chan struct{}, 1)}
	if stateFile == "" {
		return a
	}
	set, err := ReadFile(stateFile)
	switch {
	case err == nil:
		a.take(set)
	case !errors.Is(err, fs.ErrNotExist):
		a.refuse(fmt.Errorf("state file refused, %w: %w", ErrNoMembership, err))
	}
	return a
}

// Run reports every change and refusal.
func (a *API) Run(ctx context.Context, report func(Update)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.changed:
			for _, u := range a.news() {
				report(u)
			}
		}
	}
}

// news is what has not been reported. A set is reported before the refusal of
// what came after it, which would hide it.
func (a *API) news() (updates []Update) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := Update{Set: a.set, At: time.Now(), LastGood: a.at}
	if a.unreported {
		updates, a.unreported = append(updates, u), false
	}
	if a.refused != nil {
		u.Err = a.refused
		updates = append(updates, u)
	}
	return updates
}

// Membership returns the present set, or false when none has been given yet.
func (a *API) Membership() (fleet.Set, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.set, a.known
}

// change makes a set of the present one, whole or not at all: what the state file
// could not keep would be forgotten at a restart, and is not taken over. edit
// is given the set and whether there is one.
func (a *API) change(edit func(set fleet.Set, known bool) (fleet.Set, error)) (fleet.Set, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, err := edit(a.set, a.known)
	if err != nil {
		return a.set, err
	}
	if next.Len() > MaxEndpoints {
		return a.set, tooManyError(next.Len())
	}
	if a.known && next.Equal(a.set) && a.refused == nil {
		return a.set, nil
	}
	if a.stateFile != "" {
		if err := writeState(a.stateFile, next); err != nil {
			a.refuseLocked(err)
			return a.set, err
		}
	}
	a.take(next)
	return next, nil
}

// tooManyError is a number of endpoints above the bound.
type tooManyError int

func (e tooManyError) Error() string {
	return fmt.Sprintf("the membership would have %d endpoints, want at most %d", int(e), MaxEndpoints)
}

// take makes the set the present one. The state is locked, or not shared yet.
func (a *API) take(set fleet.Set) {
	a.set, a.known, a.at = set, true, time.Now()
	a.unreported, a.refused = true, nil
	a.tell()
}

// refuse has a fault reported; the present set stays.
func (a *API) refuse(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuseLocked(err)
}

func (a *API) refuseLocked(err error) {
	a.refused = err
	a.tell()
}

func (a *API) tell() {
	select {
	case a.changed <- struct{}{}:
	default: // it is told of already
	}
}
