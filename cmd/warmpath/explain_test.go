package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What is said of a body does not depend on what it is compared with.
func TestExplainEachBodyAlone(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	body := func(rest string) string {
		return fmt.Sprintf(`{"model":"m","prompt":"%s%s"}`, strings.Repeat("a long way on a bicycle. ", 12), rest)
	}
	// The first gives its home a second of work, and has what the other begins with.
	a, b := write("a.json", body(strings.Repeat("Why? ", 20_000))), write("b.json", body(strings.Repeat("Where to? ", 30)))
	for _, strategy := range []string{"PREFIX_AWARE", "KV_AWARE"} {
		t.Run(strategy, func(t *testing.T) {
			config := write("warmpath.yaml", "routingConfig: {routingStrategy: "+strategy+"}\n"+
				`membership: {static: [{address: "10.0.0.1:80"}, {address: "10.0.0.2:80"}, {address: "10.0.0.3:80"}]}`)
			explain := func(v any, files ...string) {
				t.Helper()
				var out, errs bytes.Buffer
				args := append([]string{"explain", "--json", "--path", "/v1/completions", "--config", config}, files...)
				if code := run(t.Context(), args, nil, &out, &errs); code != exitOK {
					t.Fatalf("exit %d: %s", code, errs.String())
				}
				if err := json.Unmarshal(out.Bytes(), v); err != nil {
					t.Fatal(err)
				}
			}
			var both struct {
				Bodies []explanation `json:"bodies"`
			}
			var alone [2]explanation
			explain(&both, a, b)
			explain(&alone[0], a)
			explain(&alone[1], b)
			if diff := cmp.Diff(alone[:], both.Bodies, cmpopts.IgnoreUnexported(explanation{})); diff != "" {
				t.Errorf("alone (-) and with the other (+):\n%s", diff)
			}
		})
	}
}
