package doctor_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/doctor"
	"github.com/warmpath/warmpath/internal/testenv"
)

// refused are the faults that Envoy itself finds before it starts.
var refused = []string{
	"unknown", "no-fallback", "locality", "any-address", "one-address", "no-node", "xds-unknown", "ext-proc-http1", "cluster-unknown", "clusters-validated",
}

// Envoy's own check takes every other seeded error: it does not find them.
func TestEnvoyDoesNotFindThem(t *testing.T) {
	tried := make(map[string]bool)
	for i, f := range faults {
		if tried[f.id] || doctor.Named(f.id).Severity != doctor.Error && !slices.Contains(refused, f.id) {
			continue
		}
		tried[f.id] = true
		config := f.config(t)
		t.Run(f.id, func(t *testing.T) {
			t.Parallel()
			out, err := validate(t, config)
			if (err != nil) != slices.Contains(refused, f.id) {
				t.Errorf("fault %d: Envoy says (%v)\n%s", i, err, out)
			}
		})
	}
}

// Envoy has a way of its own to read what is not in quotes, and takes some texts for truth
// values: what it takes is taken here, and what it refuses is told of.
func TestScalarsAreReadAsEnvoyReadsThem(t *testing.T) {
	shipped, err := envoy.Render(own)
	if err != nil {
		t.Fatal(err)
	}
	for where, values := range map[string][]string{
		"failure_mode_allow: true": {"yes", "N", "on", "OFF", "True", "tRue", "yES", `"true"`, `"no"`, "'1'", "1", "t", `"on"`, "!!str true", `!!str "on"`, "~", "2", "|-\n                true"},
		"stat_prefix: llm":         {"1.5", "5", "yes", "y", "99999999999", "0x1F", "08", "1_000", "!!str 5", `!!str "5"`, `"5"`, "2001-01-01", ".inf", "0o7", "+5", "true5"},
		"num_retries: 2":           {"1_0", "0x2", "02", "0o2", "0b1", `"2"`, "2.0", "2e0", "+2", "2.5", "-1", `""`, "two"},
		"threshold: {value: 0}":    {"threshold: {value: .5}", "threshold: {value: 1e1}", "threshold: {value: +.5E1}", "threshold: {value: 0x1}", `threshold: {value: "1"}`, "threshold: {value: 1_0}"},
		"request_body_mode: NONE":  {"none", "nOnE", `"None"`, "streamed", `"0"`, "'2'", "0", `"+1"`, `"01"`, `"0x1"`, `"1.0"`, "1.0", `" 1"`, `""`, "nope", "no", "~", "BUFFERED-PARTIAL", "!!str none"},
		"type: STATIC":             {"static", "Strict_Dns", "strict-dns", "strictdns", `"1"`},
	} {
		if !strings.Contains(string(shipped), where) {
			t.Fatalf("no %q in what is shipped", where)
		}
		for _, value := range values {
			t.Run(value, func(t *testing.T) {
				t.Parallel()
				key, _, _ := strings.Cut(where, ": ")
				config := strings.Replace(string(shipped), where, key+": "+strings.TrimPrefix(value, key+": "), 1)
				d, err := doctor.Read("envoy.yaml", []byte(config))
				var found []doctor.Finding
				if err == nil {
					found, err = doctor.Examine(d, setup())
				}
				unknown := slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.ID == "unknown" })
				out, refused := validate(t, []byte(config))
				if (err != nil || unknown) != (refused != nil) {
					t.Errorf("%s %s: %v %v, and Envoy says (%v)\n%s", key, value, err, found, refused, out)
				}
			})
		}
	}
}

// However many names of enums are in small letters, nothing else is found because of them.
func TestManyNamesInSmallLetters(t *testing.T) {
	shipped, err := envoy.Render(own)
	if err != nil {
		t.Fatal(err)
	}
	var more strings.Builder
	for i := range 3 * 120 {
		fmt.Fprintf(&more, "  - {name: c%d, type: strict_dns, connect_timeout: 1s, lb_policy: round_robin}\n", i)
	}
	config := strings.Replace(string(shipped), "  - name: warmpath_xds\n", more.String()+"  - name: warmpath_xds\n", 1)
	config = strings.Replace(config, "codec_type: AUTO", "codec_type: auto", 1)
	if found := examine(t, "envoy.yaml", []byte(config), setup()); len(found) > 0 {
		t.Errorf("found %d, first %+v", len(found), found[0])
	}
}

// validate has Envoy look at a configuration, without starting with it.
func validate(t *testing.T, config []byte) ([]byte, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), testenv.Envoy(t), "--mode", "validate", "--disable-hot-restart", "-l", "warn", "-c", file).CombinedOutput()
}
