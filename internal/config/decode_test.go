package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/warmpath/warmpath/internal/fleet"
)

// TestDecodeGolden pins the words of every problem. Rewrite with -rewrite.
//
//	decode     what differs from the default, or the problems
//	endpoints  the same for a membership file
//
// Escapes are written as \t, \x00, \xff and \ufeff.
func TestDecodeGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			input := unescape(d.Input)
			switch d.Cmd {
			case "decode":
				return describeConfig(input)
			case "endpoints":
				return describeEndpoints(input)
			default:
				t.Fatalf("unknown command %q", d.Cmd)
				return ""
			}
		})
	})
}

func unescape(s string) string {
	return strings.NewReplacer(`\t`, "\t", `\x00`, "\x00", `\xff`, "\xff", `\ufeff`, "\ufeff").Replace(s)
}

func describeConfig(input string) string {
	c, problems := Decode("warmpath.yaml", []byte(input))
	if len(problems) > 0 {
		return problems.Error() + "\n"
	}
	var b strings.Builder
	leaves := c.leaves()
	for _, path := range Diff(Default(), c) {
		fmt.Fprintf(&b, "%s = %s\n", path, leaves[path])
	}
	return b.String()
}

func describeEndpoints(input string) string {
	list, problems := DecodeEndpoints("endpoints.yaml", []byte(input))
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "refused: %s\n", p)
	}
	for _, p := range list.Problems {
		fmt.Fprintf(&b, "left out: %s\n", p)
	}
	for _, e := range list.Endpoints {
		fmt.Fprintf(&b, "%s weight=%d %s zone=%q", e.Address, e.Weight, e.State, e.Zone)
		if e.Adapters != "" {
			fmt.Fprintf(&b, " adapters=%q", e.Adapters.All())
		}
		if e.Priority > 0 || e.Instance != "" {
			fmt.Fprintf(&b, " priority=%d instance=%q", e.Priority, e.Instance)
		}
		b.WriteByte('\n')
	}
	if len(list.Refused) > 0 {
		fmt.Fprintf(&b, "named by a bad entry: %s\n", strings.Join(list.Refused, " "))
	}
	if b.Len() == 0 {
		return "no endpoints, no problems\n"
	}
	return b.String()
}

const sample = `listen: {extProc: "127.0.0.1:1"}
routingConfig:
  routingStrategy: PREFIX_AWARE
  prefixAwareRoutingConfig: {prefixLength: 2048, concurrencyThreshold: 7}
membership:
  static: [{address: "10.0.0.1:8000", zone: a}]
retry: {attempts: 1}
`

// Other ways of writing one configuration mean the same.
func TestDecodeSpellings(t *testing.T) {
	want, problems := Decode("a", []byte(sample))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	sections := strings.SplitAfter(sample, "\nro")
	for name, text := range map[string]string{
		"comments":    "# a\n---\n" + strings.ReplaceAll(sample, "\n", " # note\n") + "...\n",
		"byte order":  "\ufeff" + sample,
		"CRLF":        strings.ReplaceAll(sample, "\n", "\r\n"),
		"empty rest":  sample + "limits:\nlog: {}\n",
		"other order": "ro" + sections[1] + strings.TrimSuffix(sections[0], "ro"),
		"paste":       strings.NewReplacer("routing", "Routing", "prefix", "Prefix", "concurrency", "Concurrency").Replace(sample),
		"JSON":        `{"listen":{"extProc":"127.0.0.1:1"},"routingConfig":{"routingStrategy":"PREFIX_AWARE","prefixAwareRoutingConfig":{"prefixLength":2048,"concurrencyThreshold":7}},"membership":{"static":[{"address":"10.0.0.1:8000","zone":"a"}]},"retry":{"attempts":1}}`,
		"v4 in v6":    strings.Replace(sample, "10.0.0.1", "[::ffff:10.0.0.1]", 1),
		"anchor":      sample + "tenant: &anchor\n",
	} {
		got, problems := Decode("a", []byte(text))
		if diff := cmp.Diff(want, got, compareConfigs); diff != "" || len(problems) > 0 {
			t.Errorf("%s: problems %v, -want +got\n%s", name, problems, diff)
		}
	}
}

var compareConfigs = cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b fleet.Endpoint) bool { return a == b })}

// One more problem never hides another.
func TestDecodeReportsAll(t *testing.T) {
	faults := []string{
		"listen: {extProc: nowhere}\n",
		"routingConfig: {routingStrategy: FASTEST}\n",
		"tenant: {header: 'two words'}\n",
		"membership: {drainTimeout: 5}\n", // two: the unit, and no source
		"cluster: {name: a:b}\n",
		"limits: {requestBodyBytes: 1}\n",
		"retry: {attempts: 6}\n",
		"tracing: {sampleRatio: .nan}\n",
		"log: {level: loud}\n",
		"other: 1\n",
	}
	_, all := Decode("a", []byte(strings.Join(faults, "")))
	if len(all) != len(faults)+1 {
		t.Errorf("%d problems, want %d:\n%v", len(all), len(faults)+1, all)
	}
	for i, fault := range faults {
		if !strings.Contains(fault, "membership") {
			fault += "membership: {file: f}\n"
		}
		_, one := Decode("a", []byte(fault))
		if len(one) == 0 {
			t.Errorf("%q is accepted", faults[i])
			continue
		}
		found := false
		for _, p := range all {
			found = found || p.Path == one[0].Path && p.Message == one[0].Message && p.Line == i+1
		}
		if !found {
			t.Errorf("line %d: %v\nis not in\n%v", i+1, one[0], all)
		}
	}
}

func TestLoad(t *testing.T) {
	if _, err := Load("testdata/absent.yaml"); err == nil || !strings.Contains(err.Error(), "testdata/absent.yaml") {
		t.Errorf("error %v does not name the file", err)
	}
	if _, err := Load("testdata"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v for a folder", err)
	}
	c, err := Load("../../examples/quickstart/warmpath.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.RoutingConfig.RoutingStrategy != PrefixAware {
		t.Errorf("quickstart routes %s", c.RoutingConfig.RoutingStrategy)
	}
	if got, want := c.Membership.Path("x/y/warmpath.yaml"), "x/y/endpoints.yaml"; got != want {
		t.Errorf("membership file %q, want %q", got, want)
	}
	if got := (Membership{File: "/a/b"}).Path("x/y"); got != "/a/b" {
		t.Errorf("absolute membership file %q", got)
	}
	if got := (Membership{}).Path("x/y"); got != "" {
		t.Errorf("static membership has the file %q", got)
	}
}
