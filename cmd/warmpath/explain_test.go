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
	body := func(common int, rest string, n int) string {
		return fmt.Sprintf(`{"model":"m","prompt":"%s%s"}`, strings.Repeat("a long way on a bicycle. ", common), strings.Repeat(rest, n))
	}
	for _, c := range []struct {
		strategy     string
		common, a, b int
	}{
		{"PREFIX_AWARE", 12, 20_000, 30}, // the first gives the home of both a second of work
		{"KV_AWARE", 400, 1, 300},        // the first has most of the second
	} {
		t.Run(c.strategy, func(t *testing.T) {
			a, b := write("a.json", body(c.common, "Why? ", c.a)), write("b.json", body(c.common, "Where to? ", c.b))
			config := write("warmpath.yaml", "routingConfig: {routingStrategy: "+c.strategy+"}\n"+
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
