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
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/warmpath/warmpath/internal/fleet"
)

const (
	// Path is what is asked for.
	Path = "/v1/models"
	// maxAnswer bounds an answer in bytes, maxAdapters the adapters of an endpoint.
	maxAnswer   = 1 << 20
	maxAdapters = 1000
	// concurrency is how many endpoints are asked at once, timeout how long each has.
	concurrency = 8
	timeout     = 5 * time.Second
)

// Lister keeps a list of the adapters of a pool's endpoints.
type Lister struct {
	interval time.Duration
	changed  func(map[string]fleet.Names)
	// Failed is told of each answer that cannot be used; nil tells nobody.
	Failed func(address string, err error)
	client *http.Client

	mu      sync.Mutex
	members fleet.Set
	wake    chan struct{}
}

// NewLister returns a lister that asks every endpoint once an interval, and tells of
// every change: the map has the adapters of each member that has answered, and is
// not changed later. An endpoint that does not answer keeps those it had.
func NewLister(interval time.Duration, changed func(map[string]fleet.Names)) *Lister {
	transport := &http.Transport{DisableKeepAlives: true, Proxy: nil}
	return &Lister{
		interval: interval, changed: changed, wake: make(chan struct{}, 1),
		client: &http.Client{
			Transport: transport, Timeout: timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// SetMembers replaces the endpoints that are asked; new ones are asked at once.
func (l *Lister) SetMembers(set fleet.Set) {
	l.mu.Lock()
	l.members = set
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run asks until ctx ends.
func (l *Lister) Run(ctx context.Context) {
	ticker := time.NewTicker(l.interval)
	defer ticker.Stop()
	known := make(map[string]fleet.Names)
	for {
		onlyNew := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.wake:
			onlyNew = true
		}
		next := l.ask(ctx, known, onlyNew)
		if ctx.Err() == nil && !maps.Equal(next, known) {
			known = next
			l.changed(maps.Clone(next))
		}
	}
}

// ask asks the members, or those of them that are not known, and returns what all
// have.
func (l *Lister) ask(ctx context.Context, known map[string]fleet.Names, onlyNew bool) map[string]fleet.Names {
	l.mu.Lock()
	members := l.members
	l.mu.Unlock()
	next := make(map[string]fleet.Names, members.Len())
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(concurrency)
	for _, e := range members.Endpoints() {
		had, is := known[e.Address]
		if is {
			mu.Lock()
			next[e.Address] = had
			mu.Unlock()
		}
		if is && onlyNew {
			continue
		}
		group.Go(func() error {
			names, err := l.adapters(ctx, e.Address)
			if err != nil {
				if l.Failed != nil && ctx.Err() == nil {
					l.Failed(e.Address, err)
				}
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			next[e.Address] = names
			return nil
		})
	}
	_ = group.Wait() // no function of it returns an error
	return next
}

func (l *Lister) adapters(ctx context.Context, address string) (fleet.Names, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+Path, http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("User-Agent", "warmpath-models")
	response, err := l.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: status %d, want 200", Path, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
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
