package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// tally counts what went wrong, by kind.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

// maxKinds bounds the kinds that are told apart.
const maxKinds = 20

func newTally() *tally { return &tally{count: make(map[string]int)} }

func (t *tally) add(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.count[what]; !known && len(t.count) >= maxKinds {
		what = "others"
	}
	t.count[what]++
}

// err is all of it, nil if there is nothing.
func (t *tally) err(what string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(t.count)) {
		parts = append(parts, fmt.Sprintf("%s (%d times)", kind, t.count[kind]))
	}
	if len(parts) == 0 {
		return nil
	}
	return errors.New(what + ": " + strings.Join(parts, ", "))
}

// withoutAddress is an error without URLs and ports, which differ from one to the
// next.
func withoutAddress(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var operation *net.OpError
	if errors.As(err, &operation) {
		err = fmt.Errorf("%s: %w", operation.Op, operation.Err)
	}
	return err
}
