package extproc

import (
	"testing"

	"github.com/warmpath/warmpath/internal/route"
)

// Warm is at least half of the prompt, and nothing is expected where nobody remembers.
func TestExpectation(t *testing.T) {
	auto := func(warm int) route.Decision {
		return route.Decision{Strategy: route.PrefixAware, Keyed: true, HomeCount: 1, Warm: warm}
	}
	for name, c := range map[string]struct {
		record        Record
		cached, chars int
		want          CacheExpectation
	}{
		"all":                       {Record{Decision: auto(1000), PromptChars: 1000, KeyChars: 800}, 1000, 1000, CacheWarm},
		"more than there is":        {Record{Decision: auto(1024), PromptChars: 1000}, 1000, 1000, CacheWarm},
		"half":                      {Record{Decision: auto(500), PromptChars: 1000}, 500, 1000, CacheWarm},
		"less":                      {Record{Decision: auto(499), PromptChars: 1000}, 499, 1000, CacheCold},
		"half of what was read":     {Record{Decision: auto(500), PromptChars: 4000, KeyChars: 1000}, 500, 4000, CacheCold},
		"only the key is known":     {Record{Decision: auto(500), KeyChars: 1000}, 500, 1000, CacheWarm},
		"nothing":                   {Record{Decision: auto(0), PromptChars: 1}, 0, 1, CacheCold},
		"no prompt":                 {Record{Decision: auto(0)}, 0, 0, CacheUnknown},
		"KV_AWARE":                  {Record{Decision: route.Decision{Strategy: route.KVAware, Keyed: true, Warm: 600}, PromptChars: 1000}, 600, 1000, CacheWarm},
		"KV_AWARE without a key":    {Record{Decision: route.Decision{Strategy: route.KVAware}, PromptChars: 1000}, 0, 1000, CacheUnknown},
		"RANDOM":                    {Record{Decision: route.Decision{Strategy: route.Random}, PromptChars: 1000}, 0, 1000, CacheUnknown},
		"LEAST_OUTSTANDING":         {Record{Decision: route.Decision{Strategy: route.LeastOutstandingRequests}, PromptChars: 1000}, 0, 1000, CacheUnknown},
		"PREFIX_AWARE, fixed":       {Record{Decision: route.Decision{Strategy: route.PrefixAware, Keyed: true}, PromptChars: 1000}, 0, 1000, CacheUnknown},
		"nobody could be chosen":    {Record{PromptChars: 1000}, 0, 1000, CacheUnknown},
		"PREFIX_AWARE, without key": {Record{Decision: route.Decision{Strategy: route.PrefixAware, HomeCount: 1}, PromptChars: 1000}, 0, 1000, CacheUnknown},
	} {
		cached, chars, known := c.record.Expected()
		if got := c.record.CacheExpectation(); got != c.want || cached != c.cached || chars != c.chars || known != (c.want != CacheUnknown) {
			t.Errorf("%s: %v, %d of %d (known: %v), want %v, %d of %d", name, got, cached, chars, known, c.want, c.cached, c.chars)
		}
	}
}

// What was expected of the chosen endpoint says nothing of another that served in its
// place: the time to the first token after a retry is none of a warm cache. What the
// decision expected stays.
func TestExpectationOfWhoServed(t *testing.T) {
	for served, want := range map[string]CacheExpectation{"": CacheWarm, "10.0.0.1:80": CacheWarm, "10.0.0.2:80": CacheUnknown} {
		r := Record{
			Served: served, PromptChars: 1000,
			Decision: route.Decision{Strategy: route.PrefixAware, Keyed: true, HomeCount: 1, Warm: 1000, Chosen: "10.0.0.1:80"},
		}
		if got := r.CacheExpectation(); got != want {
			t.Errorf("served by %q: %v, want %v", served, got, want)
		}
		if cached, chars, known := r.Expected(); cached != 1000 || chars != 1000 || !known {
			t.Errorf("served by %q: %d of %d (known: %v)", served, cached, chars, known)
		}
	}
}
