// Package modelserver asks model servers which LoRA adapters they have (GET /v1/models,
// where vLLM lists each adapter beside the model that it belongs to) and how their
// caches fare (GET /metrics of vLLM and SGLang).
package modelserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

const (
	// Path is what is asked for.
	Path = "/v1/models"
	// maxAnswer bounds an answer in bytes, maxAdapters the adapters of an endpoint.
	maxAnswer   = 1 << 20
	maxAdapters = 1000
	// gather is how long changes are gathered while others are still asked, so that a
	// fleet that answers is one change and silent ones hold none up.
	gather = time.Second
)

// Lister keeps a list of the adapters of a pool's endpoints.
type Lister struct {
	rounds  *rounds
	changed func(map[string]fleet.Names)
	// Failed is told of each answer that cannot be used, concurrently; nil tells nobody.
	Failed func(address string, err error)

	mu    sync.Mutex
	known map[string]fleet.Names
	// untold: known has changed since it was told of, the last time at toldAt.
	untold bool
	toldAt time.Time
}

// NewLister returns a lister that asks every endpoint when it comes and once an
// interval, and tells of changes: the map has the adapters of each member that has
// answered, and is not changed later. An endpoint that does not answer keeps those it had.
func NewLister(interval time.Duration, changed func(map[string]fleet.Names)) *Lister {
	return &Lister{rounds: newRounds(interval), changed: changed, known: make(map[string]fleet.Names)}
}

// SetMembers replaces the endpoints that are asked. Those that are new or have changed
// are asked at once, before others that wait.
func (l *Lister) SetMembers(set fleet.Set) { l.rounds.set(set) }

// Run asks until ctx ends.
func (l *Lister) Run(ctx context.Context) { l.rounds.run(ctx, l.ask, l.tell) }

func (l *Lister) ask(ctx context.Context, address string) {
	names, err := l.adapters(ctx, address)
	if err != nil {
		if l.Failed != nil && ctx.Err() == nil {
			l.Failed(address, err)
		}
		return
	}
	if _, is := l.rounds.current().Index(address); !is {
		return // it has left meanwhile
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if had, is := l.known[address]; !is || had != names {
		l.known[address], l.untold = names, true
	}
}

// tell forgets who is no member, and tells of changes: all that there are if nobody is
// asked any more, and else once in a while.
func (l *Lister) tell(members fleet.Set, rest bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for address := range l.known {
		if _, is := members.Index(address); !is {
			delete(l.known, address)
			l.untold = true
		}
	}
	if l.untold && (rest || time.Since(l.toldAt) >= gather) {
		l.untold, l.toldAt = false, time.Now()
		l.changed(maps.Clone(l.known))
	}
}

func (l *Lister) adapters(ctx context.Context, address string) (fleet.Names, error) {
	answer, err := l.rounds.get(ctx, address, Path, "warmpath-models")
	if err != nil {
		return "", err
	}
	defer answer.Close()
	body, err := io.ReadAll(io.LimitReader(answer, maxAnswer+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("GET %s: %w", Path, err)
	case len(body) > maxAnswer:
		return "", fmt.Errorf("GET %s: an answer of more than %d bytes", Path, maxAnswer)
	}
	return parse(body)
}

// parse reads the answer: a model with a parent is an adapter of it.
func parse(body []byte) (fleet.Names, error) {
	var list struct {
		Data *[]struct {
			ID     string  `json:"id"`
			Parent *string `json:"parent"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return "", fmt.Errorf("GET %s: %w", Path, err)
	}
	if list.Data == nil {
		return "", errors.New("GET " + Path + ": the answer has no data")
	}
	var names []string
	for _, model := range *list.Data {
		if model.Parent != nil && *model.Parent != "" && len(names) < maxAdapters {
			names = append(names, model.ID)
		}
	}
	return fleet.NewNames(names...), nil
}
