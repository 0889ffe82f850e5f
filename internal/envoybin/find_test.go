package envoybin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// fake writes a program that answers --version as Envoy does.
func fake(t *testing.T, path, version string) string {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\nprintf '\\n%%s  version: 0a1b2c/%s/Clean/RELEASE/BoringSSL\\n\\n' \"$0\"\n", version)
	return program(t, path, script)
}

func program(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock() // see unpack
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	explicit := fake(t, at("mine", "envoy-custom"), "1.41.0-dev")
	inPath := fake(t, at("bin", "envoy"), "1.38.0")
	newest := fake(t, at("func-e", "1.40.1", "bin", "envoy"), "1.40.1")
	fake(t, at("func-e", "1.9.0", "bin", "envoy"), "1.9.0")
	fake(t, at("func-e", "1.39.2", "bin", "envoy"), "1.39.2")
	tools := fake(t, at("tools", "envoy"), "1.40.0")
	fake(t, at("old", "envoy"), "1.37.4")

	for _, tt := range []struct {
		name   string
		places Places
		want   string
		v      Version
	}{
		{"explicit before all", Places{Explicit: explicit, Path: at("bin")}, explicit, Version{1, 41, 0}},
		{"path before func-e", Places{Path: at("empty") + ":" + at("bin"), FuncE: []string{at("func-e")}}, inPath, Version{1, 38, 0}},
		{"newest of func-e", Places{Path: at("empty"), FuncE: []string{at("none"), at("func-e")}, Tools: at("tools")}, newest, Version{1, 40, 1}},
		{"tools last", Places{Tools: at("tools")}, tools, Version{1, 40, 0}},
		{"an old one is passed over", Places{Path: at("old"), Tools: at("tools")}, tools, Version{1, 40, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, v, err := Find(t.Context(), tt.places)
			if path != tt.want || v != tt.v || err != nil {
				t.Errorf("Find = %q, %v, %v; want %q, %v", path, v, err, tt.want, tt.v)
			}
		})
	}
}

func TestFindErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := fake(t, filepath.Join(dir, "old", "envoy"), "1.37.4")
	broken := program(t, filepath.Join(dir, "broken", "envoy"), "#!/bin/sh\nexit 3\n")
	other := program(t, filepath.Join(dir, "other", "envoy"), "#!/bin/sh\necho a chat client\n")
	good := fake(t, filepath.Join(dir, "good", "envoy"), "1.40.0")
	paths := strings.Join([]string{filepath.Dir(old), filepath.Dir(broken), filepath.Dir(other)}, ":")

	for _, tt := range []struct {
		name     string
		places   Places
		want     []string
		notFound bool
	}{
		{"nothing anywhere", Places{Path: dir}, []string{"make envoy"}, true},
		{"every reason is told", Places{Path: paths}, []string{"1.37.4", "1.38.0", "exit status 3", "a chat client", "make envoy"}, true},
		{"a bad choice has no substitute", Places{Explicit: old, Tools: filepath.Dir(good)}, []string{"$ENVOY", "1.37.4", "1.38.0"}, false},
		{"a missing choice neither", Places{Explicit: filepath.Join(dir, "x"), Path: filepath.Dir(good)}, []string{"$ENVOY", "no such file"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Find(t.Context(), tt.places)
			if err == nil || errors.Is(err, ErrNotFound) != tt.notFound {
				t.Fatalf("Find error %v, want one that is ErrNotFound: %t", err, tt.notFound)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not contain %q", err, want)
				}
			}
		})
	}
}

func TestPlacesFrom(t *testing.T) {
	t.Parallel()
	from := func(env map[string]string) Places {
		return PlacesFrom(func(k string) string { return env[k] }, "/src")
	}
	got := from(map[string]string{"HOME": "/home/a", "PATH": "/bin", "ENVOY": "/e"})
	if got.Explicit != "/e" || got.Path != "/bin" || got.Tools != "/src/.tools" ||
		!slices.Equal(got.FuncE, []string{"/home/a/.local/share/func-e/envoy-versions", "/home/a/.func-e/versions"}) {
		t.Errorf("PlacesFrom = %+v", got)
	}
	got = from(map[string]string{"HOME": "/home/a", "FUNC_E_HOME": "/f", "FUNC_E_DATA_HOME": "/d"})
	if !slices.Equal(got.FuncE, []string{"/d/envoy-versions", "/f/versions"}) {
		t.Errorf("PlacesFrom with func-e's own variables = %+v", got)
	}
	if got = from(nil); len(got.FuncE) != 0 {
		t.Errorf("PlacesFrom without a home = %+v", got)
	}
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "1.40", "v1.40.0", "1.40.0-dev", "1.40.0.1", "1.40.99999999999999999999"} {
		if v, err := ParseVersion(s); err == nil {
			t.Errorf("ParseVersion(%q) = %v, want an error", s, v)
		}
	}
	if v, err := ParseVersion("1.40.2"); err != nil || v != (Version{1, 40, 2}) {
		t.Errorf("ParseVersion(1.40.2) = %v, %v", v, err)
	}
	if (Version{1, 9, 9}).Compare(Version{1, 38, 0}) >= 0 || (Version{2, 0, 0}).Compare(Version{1, 38, 0}) <= 0 {
		t.Error("versions are compared as text")
	}
}
