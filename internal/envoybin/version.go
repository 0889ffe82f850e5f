package envoybin

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Version is the release of an Envoy binary.
type Version struct{ Major, Minor, Patch int }

// Minimum is the oldest Envoy that warmpath's configuration works with.
func Minimum() Version { return Version{Major: 1, Minor: 38} }

// String returns the dotted form, as "1.40.0".
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Compare is negative when v is older than o, zero when they are equal.
func (v Version) Compare(o Version) int {
	return cmp.Or(cmp.Compare(v.Major, o.Major), cmp.Compare(v.Minor, o.Minor), cmp.Compare(v.Patch, o.Patch))
}

// ParseVersion reads a dotted version, "1.40.0".
func ParseVersion(s string) (Version, error) {
	m := dotted.FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("version %q: want three numbers, as 1.40.0", s)
	}
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(m[i+1]); err != nil {
			return Version{}, fmt.Errorf("version %q: %w", s, err)
		}
	}
	return Version{n[0], n[1], n[2]}, nil
}

var (
	dotted = regexp.MustCompile(`^(\d+)\.(\d+)\.(\d+)$`)
	// A build prints "path  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL";
	// distributors add a suffix to the number.
	printed = regexp.MustCompile(`version: [0-9a-f]*/(\d+\.\d+\.\d+)[^/]*/`)
)

// probeTimeout bounds one run of --version, which takes about 50 ms. It is
// generous because a busy machine loads 100 MB of binary slowly.
const probeTimeout = 30 * time.Second

// probe runs the binary and returns its version, refusing one below Minimum.
func probe(ctx context.Context, path string) (Version, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return Version{}, fmt.Errorf("%s --version: %w", path, err)
	}
	m := printed.FindSubmatch(out)
	if m == nil {
		return Version{}, fmt.Errorf("%s --version: no Envoy version in %q", path, shorten(string(out)))
	}
	v, err := ParseVersion(string(m[1]))
	if err != nil {
		return Version{}, fmt.Errorf("%s --version: %w", path, err)
	}
	if v.Compare(Minimum()) < 0 {
		return Version{}, fmt.Errorf("%s is Envoy %s, older than the oldest supported %s", path, v, Minimum())
	}
	return v, nil
}

func shorten(s string) string {
	const limit = 200
	s = strings.TrimSpace(s)
	if len(s) > limit {
		return s[:limit] + "..."
	}
	return s
}
