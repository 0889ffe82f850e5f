// Package envoybin finds an Envoy binary on the machine that is new enough for
// warmpath's configuration, or installs a pinned one.
package envoybin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// ErrNotFound is in the error of [Find] when no source has a usable Envoy, so
// that installing one would help.
var ErrNotFound = errors.New("no usable Envoy found: run `make envoy`, which installs one into .tools")

// Places are where [Find] looks, in the order of the fields. Empty ones are
// skipped.
type Places struct {
	// Explicit is the user's own choice, a path, conventionally $ENVOY. If it is
	// set nothing else is looked at, so that a wrong one is noticed.
	Explicit string
	// Path is a list of directories in the form of $PATH.
	Path string
	// FuncE are the directories in which func-e keeps a directory a version.
	FuncE []string
	// Tools is the directory that [Install] fills.
	Tools string
}

// PlacesFrom returns the usual places of a user, read through getenv
// (os.Getenv), for the module whose root directory is given.
func PlacesFrom(getenv func(string) string, moduleRoot string) Places {
	home := getenv("HOME")
	data := getenv("FUNC_E_DATA_HOME")
	if data == "" && home != "" {
		data = filepath.Join(home, ".local", "share", "func-e")
	}
	legacy := getenv("FUNC_E_HOME")
	if legacy == "" && home != "" {
		legacy = filepath.Join(home, ".func-e")
	}
	p := Places{Explicit: getenv("ENVOY"), Path: getenv("PATH"), Tools: filepath.Join(moduleRoot, ".tools")}
	if data != "" {
		p.FuncE = append(p.FuncE, filepath.Join(data, "envoy-versions"))
	}
	if legacy != "" {
		p.FuncE = append(p.FuncE, filepath.Join(legacy, "versions"))
	}
	return p
}

// ModuleRoot returns the nearest directory at or above dir that has a go.mod.
func ModuleRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("module root of %q: %w", dir, err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no go.mod at or above %s", dir)
		}
	}
}

// Find returns the first usable Envoy and its version. A binary that does not
// run or is too old is passed over, but its reason is kept for the error;
// p.Explicit alone admits no substitute.
func Find(ctx context.Context, p Places) (path string, v Version, err error) {
	if p.Explicit != "" {
		v, err := probe(ctx, p.Explicit)
		if err != nil {
			return "", Version{}, fmt.Errorf("the Envoy named by $ENVOY: %w", err)
		}
		return p.Explicit, v, nil
	}
	var reasons []error
	for _, candidate := range candidates(p) {
		v, err := probe(ctx, candidate)
		if err == nil {
			return candidate, v, nil
		}
		reasons = append(reasons, err)
	}
	return "", Version{}, errors.Join(append([]error{ErrNotFound}, reasons...)...)
}

// candidates lists the existing executables of all places but Explicit.
func candidates(p Places) []string {
	var found []string
	add := func(path string) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			found = append(found, path)
		}
	}
	for _, dir := range filepath.SplitList(p.Path) {
		// A relative directory in PATH would run whatever lies in the current one.
		if filepath.IsAbs(dir) {
			add(filepath.Join(dir, "envoy"))
		}
	}
	for _, path := range funcE(p.FuncE) {
		add(path)
	}
	if p.Tools != "" {
		add(filepath.Join(p.Tools, "envoy"))
	}
	return found
}

// funcE lists func-e's binaries, the newest version first.
func funcE(dirs []string) []string {
	type release struct {
		path string
		v    Version
	}
	var releases []release
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // func-e was never used here
		}
		for _, e := range entries {
			if v, err := ParseVersion(e.Name()); err == nil {
				releases = append(releases, release{filepath.Join(dir, e.Name(), "bin", "envoy"), v})
			}
		}
	}
	slices.SortStableFunc(releases, func(a, b release) int { return b.v.Compare(a.v) })
	paths := make([]string, len(releases))
	for i, r := range releases {
		paths[i] = r.path
	}
	return paths
}
