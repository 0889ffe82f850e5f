package route

import (
	"slices"
	"strings"
)

// ModelRules give models values by their names: exact ones, and such as end in *, for
// all names that begin alike. The zero ModelRules have none.
type ModelRules[V any] struct {
	exact      map[string]V
	beginnings map[string]V
	// lengths are those of the beginnings, the longest first. A look-up tries each:
	// there are no more than a rule may have bytes, however many rules there are.
	lengths []int
}

// Add gives a rule a value. It returns the value that the rule has already, which
// stays, and whether there is one.
func (r *ModelRules[V]) Add(rule string, value V) (other V, taken bool) {
	if r.exact == nil {
		r.exact, r.beginnings = make(map[string]V), make(map[string]V)
	}
	rules := r.exact
	start, many := strings.CutSuffix(rule, "*")
	if many {
		rules = r.beginnings
	}
	if other, taken = rules[start]; taken {
		return other, true
	}
	rules[start] = value
	if many {
		if i, has := slices.BinarySearchFunc(r.lengths, len(start), func(a, b int) int { return b - a }); !has {
			r.lengths = slices.Insert(r.lengths, i, len(start))
		}
	}
	return other, false
}

// Find returns the value of a model: that of the longest rule, its own name before
// all.
func (r *ModelRules[V]) Find(model string) (value V, ok bool) {
	if value, ok = r.exact[model]; ok {
		return value, true
	}
	for _, n := range r.lengths {
		if n <= len(model) {
			if value, ok = r.beginnings[model[:n]]; ok {
				return value, true
			}
		}
	}
	return value, false
}

// Names reports whether a rule is for just the model.
func (r *ModelRules[V]) Names(model string) bool {
	_, ok := r.exact[model]
	return ok
}

// Len returns how many rules there are.
func (r *ModelRules[V]) Len() int { return len(r.exact) + len(r.beginnings) }
