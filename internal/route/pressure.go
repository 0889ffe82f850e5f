package route

import "github.com/warmpath/warmpath/internal/affinity"

// pressure is that on the KV memory of the endpoints. What a request brings to be
// prefilled stays in its endpoint's memory until it ends, and where long prompts run it
// is the memory that runs out, not the time to compute: a prompt that does not fit
// holds up all behind it. Neither the number of requests nor the prefill that waits
// tells of that.
//
// The zero pressure is that of a fleet whose prompts are short or few. There the
// factor is 1, to the last bit: it would decide between endpoints that are all but
// idle, in place of the homes.
type pressure struct {
	share float64 // of the factor that holds, 0..1
	cold  float64 // characters that an endpoint's requests have brought, in the mean
}

const (
	// crowded is up to how many characters the prompts that run at an endpoint have,
	// in the mean, without any pressure: 1.25 M tokens. The traces of short prompts
	// reach a third of it under load, long sessions of agents ten times as much
	// (docs/RATIONALE.md).
	crowded = 5_000_000
	// ease is added to the cold characters before they are compared: of few, some more
	// or less mean nothing.
	ease = 1_000_000
	// longest is how many characters a request counts for at most: more than engines read.
	// Where a text goes on behind what was looked at, its body's length stands for its own,
	// images and all.
	longest = crowded
	// leastFactor is the least by which what an endpoint has not been brought makes it
	// cheaper. One that fails at once has nothing, and shall not get all.
	leastFactor = 0.5
)

// pressure is that of what runs now.
func (t *Table) pressure() (p pressure) {
	prompts := 0.0
	for i := range t.candidates {
		prompt, cold := t.candidates[i].counter.Brought()
		prompts += float64(prompt)
		p.cold += float64(cold) * t.candidates[i].perSpeed
	}
	n := float64(len(t.candidates))
	p.cold /= n
	if prompts > crowded*n {
		p.share = 1 - crowded*n/prompts
	}
	return p
}

// factor is by what the cost of a candidate is multiplied: more than 1 where the requests
// have brought more than the mean, less where they have brought less.
func (p *pressure) factor(c *candidate) float64 {
	if p.share == 0 {
		return 1
	}
	_, cold := c.counter.Brought()
	return 1 + p.share*(max((float64(cold)*c.perSpeed+ease)/(p.cold+ease), leastFactor)-1)
}

// brings is how many characters the request brings to a candidate, and how many of them
// are cold there. What is behind the levels counts as warm where these are, but not if
// they are hot, and so the beginning of many prompts.
func (a *auto) brings(i int) (prompt, cold int64) {
	warm := a.warm(i)
	if a.s.matched[i] == affinity.MaxLevels && a.hot >= affinity.MaxLevels*LevelChars {
		warm = a.hot
	}
	cold = int64(max(a.length-warm, 0))
	return min(int64(a.length), longest), min(cold, longest)
}
