package discovery

import (
	"context"
	"fmt"
	"time"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/fleet"
)

// File is a watched membership file. See docs/CONFIG.md for its format.
type File struct {
	Path string
	// Interval is the time between two readings; zero is [watch.DefaultInterval].
	Interval time.Duration
	// Read returns the content; nil is [watch.ReadFile].
	Read func(path string) ([]byte, error)
}

// Run watches the file.
func (f *File) Run(ctx context.Context, report func(Update)) error {
	var last Update
	file := watch.File{Path: f.Path, Interval: f.Interval, Read: f.Read}
	return file.Run(ctx, nil, func(e watch.Event) {
		last = next(last, f.Path, e)
		last.At = time.Now()
		if last.Err == nil {
			last.LastGood = last.At
		}
		report(last)
	})
}

// next is the state after an event: a function of the last state and the
// content, without the times.
func next(last Update, path string, e watch.Event) Update {
	kept := Update{Set: last.Set, LastGood: last.LastGood}
	if e.Err != nil {
		kept.Err = fmt.Errorf("membership file: %w", e.Err)
		return kept
	}
	list, problems := config.DecodeEndpoints(path, e.Data)
	kept.Problems = list.Problems
	switch {
	case len(problems) > 0:
		kept.Err = fmt.Errorf("membership file refused, the last good one stays: %w", problems)
		return kept
	case len(list.Endpoints) == 0 && len(list.Problems) > 0:
		kept.Err = fmt.Errorf("membership file refused, the last good one stays: %s: no entry is usable", path)
		return kept
	}
	return merge(last.Set, list)
}

// merge makes the new membership. An entry with a fault that still names a
// present member keeps it as it is: a slip in a weight must not take a running
// endpoint out.
func merge(last fleet.Set, list config.EndpointList) Update {
	u := Update{Problems: list.Problems}
	listed := make(map[string]bool, len(list.Endpoints))
	for _, e := range list.Endpoints {
		listed[e.Address] = true
	}
	endpoints := list.Endpoints
	for _, address := range list.Refused {
		if i, member := last.Index(address); member && !listed[address] {
			endpoints = append(endpoints, last.At(i))
			u.Kept = append(u.Kept, address)
		}
	}
	u.Set, _ = fleet.NewSet(endpoints) // the list has each address once
	return u
}

// ReadFile reads a membership file once, as `warmpath check` does. The error is
// what kept the file from being read, or [config.Problems] with every fault,
// those of single entries included.
func ReadFile(path string) (fleet.Set, error) {
	data, err := watch.ReadFile(path)
	if err != nil {
		return fleet.Set{}, fmt.Errorf("membership file: %w", err)
	}
	list, problems := config.DecodeEndpoints(path, data)
	set, _ := fleet.NewSet(list.Endpoints)
	return set, append(problems, list.Problems...).Err()
}
