package main

import (
	"fmt"

	"github.com/warmpath/warmpath/bench/load"
)

// The metrics that the hit rates come from.
const (
	cachedTokens = "warmpath_inspected_cached_tokens_total"
	promptTokens = "warmpath_inspected_prompt_tokens_total"
	cachedChars  = "warmpath_expected_cached_characters_total"
	promptChars  = "warmpath_prompt_characters_total"
)

// measured is what a measurement shows: what the clients saw, and what warmpath
// counted meanwhile.
type measured struct {
	load.Summary
	counts
}

// counts are metrics by name.
type counts map[string]float64

// counted returns the metrics once all requests have ended.
func (d *demonstration) counted() (counts, error) {
	if err := d.stack.Await(d.ctx, "the end of all requests", func() error {
		n, err := d.stack.Metric(d.ctx, "warmpath_requests_in_flight")
		if err == nil && n != 0 {
			err = fmt.Errorf("%v run", n)
		}
		return err
	}); err != nil {
		return nil, err
	}
	c := make(counts)
	for _, name := range []string{cachedTokens, promptTokens, cachedChars, promptChars} {
		n, err := d.stack.Metric(d.ctx, name)
		if err != nil {
			return nil, err
		}
		c[name] = n
	}
	return c, nil
}

func (c counts) minus(before counts) counts {
	d := make(counts)
	for name, n := range c {
		d[name] = n - before[name]
	}
	return d
}

// rate is one count over another, a dash if there is none.
func (c counts) rate(part, whole string) string {
	if c[whole] == 0 {
		return "–"
	}
	return percent(c[part] / c[whole])
}
