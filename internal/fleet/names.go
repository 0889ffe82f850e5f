package fleet

import (
	"slices"
	"strings"
)

// Names is a set of names as one comparable value. The zero Names is empty.
type Names string

// separator is in no name: configuration refuses control characters.
const separator = "\x00"

// NewNames returns the set of the names, without those that are empty or hold a NUL.
func NewNames(names ...string) Names {
	kept := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return name == "" || strings.Contains(name, separator)
	})
	slices.Sort(kept)
	return Names(strings.Join(slices.Compact(kept), separator))
}

// All returns the names, sorted.
func (n Names) All() []string {
	if n == "" {
		return nil
	}
	return strings.Split(string(n), separator)
}

// Has reports whether the name is one of them.
func (n Names) Has(name string) bool {
	if name == "" {
		return false
	}
	_, has := slices.BinarySearch(n.All(), name)
	return has
}

// And returns the names of both.
func (n Names) And(more Names) Names {
	switch {
	case more == "" || n == more:
		return n
	case n == "":
		return more
	}
	return NewNames(append(n.All(), more.All()...)...)
}
