package examples

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/doctor"
	"github.com/warmpath/warmpath/internal/testenv/paste"
)

// found are the ids of what doctor finds, for the configuration of the story "after".
func found(t *testing.T, name string, envoyConfig []byte) (ids []string) {
	t.Helper()
	c, err := config.Load("after/warmpath.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := doctor.Read(name, envoyConfig)
	if err != nil {
		t.Fatal(err)
	}
	s := doctor.Setup{
		Known: true, BodyLimit: c.Limits.RequestBodyBytes, Pools: []string{c.Cluster.Name}, TenantHeader: c.Tenant.Header,
		Inspection: true, Retries: true, Members: []string{"127.0.0.1:8000", "127.0.0.2:8000", "127.0.0.3:8000"},
	}
	findings, err := doctor.Examine(d, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		ids = append(ids, f.ID)
	}
	return ids
}

// The newcomer's gateway lacks what doctor names, and nothing of it is lacking after a
// change of less than 60 lines, or with the parts that are printed for it.
func TestBeforeAndAfter(t *testing.T) {
	before, after := read(t, "before/envoy.yaml"), read(t, "after/envoy.yaml")
	want := []string{
		"client-headers", "idle-timeout", "body-limit", "route-timeout", "retry-static", "no-ext-proc",
		"pool-breakers", "retry-breaker", "pool-panic", "no-override-host",
	}
	if got := found(t, "before", []byte(before)); !slices.Equal(got, want) {
		t.Errorf("before: found %q, want %q", got, want)
	}
	if got := found(t, "after", []byte(after)); len(got) > 0 {
		t.Errorf("after: found %q", got)
	}
	n := changed(strings.Split(before, "\n"), strings.Split(after, "\n"))
	if readme := read(t, "after/README.md"); n >= 60 || !strings.Contains(readme, "56 lines") || n != 56 {
		t.Errorf("%d lines differ, after/README.md says 56, and 60 are too many", n)
	}
	for _, folder := range []string{"before", "after"} {
		validate(t, folder)
	}
	endpoints := []string{"127.0.0.1:8000", "127.0.0.2:8000", "127.0.0.3:8000"}
	for name, o := range map[string]envoy.Options{
		"from warmpath": {Pool: "vllm"},
		"its own":       {Pool: "vllm", Endpoints: endpoints},
		"traced":        {Pool: "vllm", Endpoints: endpoints, Collector: "127.0.0.1:4317"},
		"by header":     {Pool: "vllm", Endpoints: endpoints, HeaderSteering: true},
	} {
		parts, err := envoy.Filter(o)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := paste.Into([]byte(before), parts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if o.Endpoints == nil { // Envoy would have two of that name
			whole = bytes.Replace(whole, []byte("- name: vllm\n"), []byte("- name: replaced\n"), 1)
		}
		want := []string(nil)
		if o.Endpoints == nil { // after/warmpath.yaml has no listen.xds
			want = []string{"xds-off"}
		}
		if got := found(t, name, whole); !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q in\n%s", name, got, want, whole)
		}
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "envoy.yaml"), whole, fs.FileMode(0o600)); err != nil {
			t.Fatal(err)
		}
		validate(t, folder)
	}
}

// changed is how many lines a diff would show, taken out or put in.
func changed(a, b []string) int {
	// common[j] is the longest common subsequence of the rest of a and b[j:].
	common := make([]int, len(b)+1)
	for i := len(a) - 1; i >= 0; i-- {
		next := slices.Clone(common)
		for j := len(b) - 1; j >= 0; j-- {
			if common[j] = max(next[j], common[j+1]); a[i] == b[j] {
				common[j] = next[j+1] + 1
			}
		}
	}
	return len(a) + len(b) - 2*common[0]
}
