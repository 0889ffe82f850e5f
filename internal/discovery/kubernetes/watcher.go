package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/endpointslice"
)

const (
	// maxSlices bounds the slices of a Service.
	maxSlices = 10_000
	// maxFaults bounds the faults that one update lists.
	maxFaults = 20
)

// objectName is what Kubernetes takes; it stands in messages.
var objectName = regexp.MustCompile(`^[a-z0-9.-]{1,253}$`)

// watcher is what Run's goroutine alone touches.
type watcher struct {
	*Source
	report func(discovery.Update)

	slices map[string]endpointslice.Slice
	// version is where the next watch begins; empty when slices are to be listed.
	version string
	last    discovery.Update
	told    bool
}

// cycle lists, if need be, and watches until the watch ends. It returns nil when
// the server ended it in its time. After any error it lists again: what was
// missed is not known.
func (w *watcher) cycle(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			w.version = ""
		}
	}()
	if w.version == "" {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	return w.watch(ctx)
}

// list reads all slices, page by page, and reports them when it has them all.
func (w *watcher) list(ctx context.Context) error {
	all := make(map[string]endpointslice.Slice)
	next, version := "", ""
	for pages := 0; ; pages++ {
		page, err := w.client.list(ctx, next)
		if errors.Is(err, errExpired) && pages > 0 {
			all, next = make(map[string]endpointslice.Slice), ""
			page, err = w.client.listWhole(ctx) // it changes faster than it is read in pages
		}
		if err != nil {
			return err
		}
		for _, s := range page.Items {
			if err := put(all, s); err != nil {
				return err
			}
		}
		if version = page.Metadata.ResourceVersion; page.Metadata.Continue == "" {
			break
		}
		if next = page.Metadata.Continue; pages >= maxSlices {
			return fmt.Errorf("a list of more than %d pages", maxSlices)
		}
	}
	if version == "" {
		return errors.New("a list without resourceVersion, as no Kubernetes API server sends")
	}
	w.slices, w.version = all, version
	w.tell()
	return nil
}

func put(all map[string]endpointslice.Slice, s endpointslice.Slice) error {
	name := s.Metadata.Name
	if !objectName.MatchString(name) {
		return fmt.Errorf("an EndpointSlice of the name %.80q, want 1 to 253 letters a-z, digits, dots and dashes", name)
	}
	all[name] = s
	if len(all) > maxSlices {
		return fmt.Errorf("more than %d EndpointSlices", maxSlices)
	}
	return nil
}

// watch follows the changes since version.
func (w *watcher) watch(ctx context.Context) error {
	d := w.times.watch + time.Duration(rand.Float64()*float64(w.times.watch)/2)
	ctx, cancel := context.WithTimeoutCause(ctx, d+w.times.grace, fmt.Errorf("the watch should have ended after %v and is silent", d.Round(time.Second)))
	defer cancel()
	events, err := w.client.watch(ctx, w.version, d)
	if err != nil {
		return err
	}
	if err := w.follow(events); !errors.Is(err, io.EOF) {
		return cause(ctx, err)
	}
	return nil
}

// follow applies events until the watch ends, which is io.EOF if the server ended
// it. Those that were read meanwhile are told together: telling looks at all
// endpoints, and a burst of changes of a large Service would fall behind.
func (w *watcher) follow(events *events) (err error) {
	ahead := events.ahead()
	for err == nil {
		next := <-ahead
		if err = next.err; err == nil {
			err = w.apply(next.event)
		}
		if err != nil || len(ahead) == 0 {
			w.tell()
		}
	}
	events.close()
	for range ahead { // its goroutine ends
		continue
	}
	return err
}

// apply takes one event over.
func (w *watcher) apply(e event) error {
	s := e.slice
	if s.Metadata.ResourceVersion == "" {
		return fmt.Errorf("an event %.20q without resourceVersion", e.kind)
	}
	switch e.kind {
	case "ADDED", "MODIFIED":
		if err := put(w.slices, s); err != nil {
			return err
		}
	case "DELETED":
		delete(w.slices, s.Metadata.Name)
	case "BOOKMARK":
		w.version = s.Metadata.ResourceVersion
		return nil
	default:
		return fmt.Errorf("an event of the unknown type %.20q", e.kind)
	}
	w.version = s.Metadata.ResourceVersion
	return nil
}

// tell reports the membership that the slices say, unless it is as it was.
func (w *watcher) tell() {
	u := w.update(slices.Collect(maps.Values(w.slices)))
	if w.told && sameReport(u, w.last) {
		return
	}
	w.told, w.last = true, u
	w.report(u)
}

// update is the state after a reading.
func (w *watcher) update(all []endpointslice.Slice) discovery.Update {
	now := time.Now()
	u := discovery.Update{Set: w.last.Set, At: now, LastGood: w.last.LastGood}
	m := endpointslice.Of(all, w.last.Set, w.options.Slices)
	u.Problems = w.problems(m.Faults)
	switch {
	case m.Listed > endpointslice.MaxEndpoints:
		u.Err = fmt.Errorf("membership of %s refused, the last good one stays: %d endpoints, want at most %d", w.name(), m.Listed, endpointslice.MaxEndpoints)
	case m.Listed > 0 && m.Set.Len() == 0:
		u.Err = fmt.Errorf("membership of %s refused, the last good one stays: of its %d endpoints none is usable", w.name(), m.Listed)
	default:
		u.Set, u.Kept, u.LastGood = m.Set, m.Kept, now
	}
	if u.Err == nil && m.Listed == 0 {
		u.Warning = fmt.Sprintf("%s has no endpoints (%d EndpointSlices): is the name right, and does its selector match any pod?", w.name(), len(all))
	}
	return u
}

// problems words the faults of slices as those of files.
func (w *watcher) problems(faults []endpointslice.Fault) (problems config.Problems) {
	for i, f := range faults {
		file := "EndpointSlice " + w.options.Namespace + "/" + f.Slice
		if i == maxFaults {
			return append(problems, config.Problem{File: file, Message: fmt.Sprintf("and %d more faults", len(faults)-maxFaults)})
		}
		problems = append(problems, config.Problem{File: file, Path: f.Path, Value: f.Value, Message: f.Message})
	}
	return problems
}

// sameReport tells whether two updates say the same, but for their times.
func sameReport(a, b discovery.Update) bool {
	return a.Set.Equal(b.Set) && text(a.Err) == text(b.Err) && slices.Equal(a.Problems, b.Problems) && slices.Equal(a.Kept, b.Kept)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// failed reports that the server cannot be asked, once for each cause.
func (w *watcher) failed(err error) {
	u := discovery.Update{Set: w.last.Set, Err: w.failure(err), At: time.Now(), LastGood: w.last.LastGood}
	if text(u.Err) == text(w.last.Err) {
		return
	}
	w.last = u
	w.report(u)
}

func (w *watcher) failure(err error) error {
	return fmt.Errorf("membership of %s not read, the last good one stays: %w", w.name(), err)
}
