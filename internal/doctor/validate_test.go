package doctor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/internal/doctor"
	"github.com/warmpath/warmpath/internal/testenv"
)

// refused are the faults that Envoy itself finds before it starts.
var refused = []string{
	"unknown", "no-fallback", "locality", "any-address", "one-address", "no-node", "xds-unknown", "ext-proc-http1", "cluster-unknown", "clusters-validated",
}

// Envoy's own check takes every other seeded error: it does not find them.
func TestEnvoyDoesNotFindThem(t *testing.T) {
	binary := testenv.Envoy(t)
	tried := make(map[string]bool)
	for i, f := range faults {
		if tried[f.id] || doctor.Named(f.id).Severity != doctor.Error && !slices.Contains(refused, f.id) {
			continue
		}
		tried[f.id] = true
		config := f.config(t)
		t.Run(f.id, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "envoy.yaml")
			if err := os.WriteFile(file, config, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), binary, "--mode", "validate", "--disable-hot-restart", "-l", "warn", "-c", file).CombinedOutput()
			if (err != nil) != slices.Contains(refused, f.id) {
				t.Errorf("fault %d: Envoy says (%v)\n%s", i, err, out)
			}
		})
	}
}
