package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someServer = "routingConfig: {routingStrategy: PREFIX_AWARE}\nmembership: {static: [{address: \"127.0.0.1:8000\"}]}\n"

// written returns the path of a new file.
func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// What is printed for one configuration is wrong for another: where warmpath listens, with
// TLS or without, and what its cluster is called.
func TestDoctorComparesConfigurations(t *testing.T) {
	const one = "listen: {xds: \"127.0.0.1:9003\"}\n"
	printed, errs, exit := warmpath(t.Context(), "envoy", "-config", written(t, "warmpath.yaml", one+someServer))
	if exit != exitOK {
		t.Fatal(errs)
	}
	file := written(t, "envoy.yaml", printed)
	for other, want := range map[string]string{
		one:                                   "",
		"listen: {extProc: \":9002\"}\n":      "",
		"listen: {xds: \"\"}\n":               "xds-off",
		"listen: {xds: \"[::1]:9103\"}\n":     "listens-elsewhere",
		"listen: {extProc: \":9102\"}\n":      "listens-elsewhere",
		"cluster: {name: foo}\n":              "pool-not-sent",
		"tls: {xds: {cert: c, key: k}}\n":     "tls-differs",
		"tls: {extProc: {cert: c, key: k}}\n": "tls-differs",
	} {
		got := strings.Join(ids(t, "doctor", "--json", "-config", written(t, "warmpath.yaml", other+someServer), "--envoy", file), " ")
		if got != want {
			t.Errorf("with %q: found %q, want %q", other, got, want)
		}
	}
}

// What could be looked at is told of although something else could not be asked.
func TestDoctorTellsWhatThereIs(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, tt := range []struct {
		args    []string
		refused int
	}{
		{[]string{"--admin", gone.URL}, 1},
		{[]string{"--live", gone.URL, "--from", gone.URL}, 1},
		{[]string{"--live", gone.URL, "--from", gone.URL, "--admin", gone.URL}, 2},
	} {
		out, errs, exit := warmpath(t.Context(), append([]string{"doctor", "--envoy", "../../examples/before/envoy.yaml"}, tt.args...)...)
		if exit != exitFailed || !strings.Contains(out, "[no-ext-proc]") || strings.Count(errs, "refused") != tt.refused {
			t.Errorf("%q: exit %d\n%s%s", tt.args, exit, out, errs)
		}
	}
	out, errs, exit := warmpath(t.Context(), "doctor", "--envoy", written(t, "none.yaml", ""), "--admin", gone.URL)
	if exit != exitUsage || out != "" || !strings.Contains(errs, "nothing in it") {
		t.Errorf("a file without anything: exit %d\n%s%s", exit, out, errs)
	}
}
