package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/bench/record"
)

const data = "../data"

// known are the bounds that the short form does not keep: docs/BENCHMARKS.md says
// why.
var known = []string{
	"fixed lengths that auto with a threshold does not beat on one axis without losing on the other, miniswe",
	"fixed lengths that auto does not beat on one axis without losing on the other, miniswe",
	"busiest/mean with 60 % on one prefix",
}

func reportOf(t *testing.T, args ...string) *report {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	o, err := parse(append(args, "-data", data, "-json", file), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), o, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := new(report)
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	if out.String() != r.markdown() {
		t.Error("the tables are not those of the JSON")
	}
	return r
}

// The short form keeps the bounds, and has them all. (Virtual time: it is the same
// on every machine.)
func TestShort(t *testing.T) {
	r := reportOf(t, "-short")
	for _, c := range r.Criteria {
		what := c.What + ", " + c.Where
		if !c.Kept && !slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(what, k) }) {
			t.Errorf("%s: %v, %s", what, c, c.Note)
		}
	}
	for _, want := range []string{
		"hit rate against the best fixed length", "fixed lengths better", "fixed lengths that auto", "busiest/mean with 60 %", "homes of the prefix",
		"hit rate of 8 routers", "hit rate in the 30 s after 7 → 8", "hit rate in the 30 s after 8 → 7", "requests over the bound",
		"largest ratio of the P90", "policies whose largest", "hit rate against the ceiling", "P50 against random", "P90 against random", "throughput against random",
		"least hit rate against", "P90 on replicas of two speeds",
	} {
		if !slices.ContainsFunc(r.Criteria, func(c criterion) bool { return strings.HasPrefix(c.What, want) }) {
			t.Errorf("no criterion %q", want)
		}
	}
	if r.Machine.Cores == 0 || r.Machine.Date == "" || r.Seed != 1 || r.Machine.Command != "policies -short" {
		t.Errorf("machine %+v, seed %d", r.Machine, r.Seed)
	}
}

// The same seed prints the same, but for where and when; another seed does not.
func TestReproducible(t *testing.T) {
	print := func(seed string) string {
		r := reportOf(t, "-short", "-traces", "copilot", "-policies", "random,hash:1024,sticky", "-parts", "table,hot,routers,scaling,robust,mixed", "-seed", seed)
		r.Machine, r.Minutes = record.Machine{}, 0
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + r.markdown()
	}
	first := print("3")
	if print("3") != first {
		t.Error("the same seed gives another report")
	}
	if print("4") == first {
		t.Error("another seed gives the same report")
	}
}

func TestInterrupted(t *testing.T) {
	o, err := parse([]string{"-short", "-data", data}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := run(ctx, o, &out, io.Discard); err == nil || out.Len() > 0 {
		t.Errorf("error %v, report %q", err, out.String())
	}
}

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"-traces moon":          `"moon"`,
		"-policies best":        `"best"`,
		"-policies prefix:1":    `"prefix:1"`,
		"-parts all":            `"all"`,
		"-seed -1":              "-1",
		"x":                     `"x"`,
		"-bad":                  "-bad",
		"-traces mooncake,,":    `""`,
		"-short -policies auto": "",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", args, err, want)
		}
	}
	o, err := parse([]string{"-traces", "weka,copilot", "-policies", "random,hash:512", "-parts", "table", "-json", "/x"}, io.Discard)
	if err != nil || len(o.scope.traces) != 2 || !slices.Equal(o.scope.policies, []string{"random", "hash:512", "auto"}) ||
		o.command != "policies -parts table -policies random,hash:512 -traces weka,copilot" {
		t.Errorf("%+v, error %v", o, err)
	}
	o.data = t.TempDir()
	if err := run(t.Context(), o, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "weka") {
		t.Errorf("no data: %v", err)
	}
}
