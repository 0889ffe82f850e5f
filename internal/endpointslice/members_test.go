package endpointslice

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/fleet"
)

// TestGolden reads slices. Rewrite with -rewrite.
//
//	members [port=..] [gone]   the next state: one EndpointSlice a line
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		var last fleet.Set
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var o Options
			for _, arg := range d.CmdArgs {
				switch arg.Key {
				case "port":
					port, err := ParsePort(arg.Vals[0])
					if err != nil {
						return err.Error() + "\n"
					}
					o.Port = port
				case "gone":
					o.Gone = true
				default:
					d.Fatalf(t, "unknown argument %s", arg.Key)
				}
			}
			var all []Slice
			for line := range strings.Lines(d.Input) {
				s, err := Parse([]byte(line))
				if err != nil {
					return err.Error() + "\n"
				}
				all = append(all, s)
			}
			m := Of(all, last, o)
			last = m.Set
			return describe(m)
		})
	})
}

func describe(m Members) string {
	var b strings.Builder
	for _, e := range m.Set.Endpoints() {
		fmt.Fprintf(&b, "%s %s", e.Address, e.State)
		if e.Zone != "" {
			b.WriteString(" in " + e.Zone)
		}
		if slices.Contains(m.Kept, e.Address) {
			b.WriteString(" (kept)")
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d of %d\n", m.Set.Len(), m.Listed)
	for _, f := range m.Faults {
		fmt.Fprintf(&b, "fault: %s %s: %s %s\n", f.Slice, f.Path, f.Value, f.Message)
	}
	return b.String()
}

func TestParsePort(t *testing.T) {
	for in, want := range map[string]PortRef{
		"": {}, "http": {Name: "http"}, "8000": {Number: 8000}, "08000": {Number: 8000}, "p-1": {Name: "p-1"}, "65535": {Number: 65535},
	} {
		if got, err := ParsePort(in); err != nil || got != want {
			t.Errorf("%q: %+v, %v", in, got, err)
		} else if again, err := ParsePort(got.String()); err != nil || again != want {
			t.Errorf("%q again: %+v, %v", got.String(), again, err)
		}
	}
	for _, in := range []string{"0", "65536", "99999999999999999999", "HTTP", "a b", "-a", "a-", "a.b", "é", strings.Repeat("a", 64)} {
		if got, err := ParsePort(in); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("port %q", in)) {
			t.Errorf("%q is taken for %+v, %v", in, got, err)
		}
	}
}

var conditions = []Conditions{{}, {Ready: new(true)}, {Ready: new(false)}, {Ready: new(false), Terminating: new(true)}, {Ready: new(true), Terminating: new(false)}}

// Random slices of few addresses, so that they repeat, against a naive reading.
func TestTwin(t *testing.T) {
	endpoint := rapid.Custom(func(t *rapid.T) Endpoint {
		return Endpoint{
			Addresses:  []string{rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1", "fd00::2", "::ffff:10.0.0.1", "gpu-1", "0.0.0.0"}).Draw(t, "address")},
			Conditions: rapid.SampledFrom(conditions).Draw(t, "conditions"),
			TargetRef:  rapid.SampledFrom([]*Target{nil, {UID: "a"}, {UID: "b"}}).Draw(t, "target"),
			Zone:       rapid.SampledFrom([]string{"", "eu-1a", "eu-1b", "no zone"}).Draw(t, "zone"),
		}
	})
	slice := rapid.Custom(func(t *rapid.T) Slice {
		ports := rapid.SampledFrom([][]Port{{{Name: "http", Port: new(int64(80))}}, {{Name: "grpc", Port: new(int64(81))}}, nil}).Draw(t, "ports")
		return Slice{
			Metadata:    Metadata{Name: rapid.StringMatching(`[a-z]{3}`).Draw(t, "name")},
			AddressType: rapid.SampledFrom([]string{"IPv4", "IPv4", "IPv6", "FQDN"}).Draw(t, "type"),
			Endpoints:   rapid.SliceOfN(endpoint, 0, 5).Draw(t, "endpoints"), Ports: ports,
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(slice, 0, 4).Draw(t, "slices")
		o := Options{Port: PortRef{Name: "http"}, Gone: rapid.Bool().Draw(t, "gone")}
		last, _ := fleet.NewSet([]fleet.Endpoint{{Address: "10.0.0.3:80", Weight: 1}})
		got := Of(all, last, o)
		if want := naive(all, last, o); !slices.Equal(got.Set.Endpoints(), want) {
			t.Fatalf("%+v, want %+v", got.Set.Endpoints(), want)
		}
		checkMembers(t, all, last, o, got)
	})
}

// naive asks of every possible address what each slice says of it.
func naive(all []Slice, last fleet.Set, o Options) (endpoints []fleet.Endpoint) {
	type claim struct {
		e   fleet.Endpoint
		uid string
	}
	var claims []claim
	for _, s := range all {
		for _, e := range s.Endpoints {
			addr, err := netip.ParseAddr(e.Addresses[0])
			terminating := e.Conditions.Terminating != nil && *e.Conditions.Terminating
			if s.AddressType == "FQDN" || err != nil || addr.IsUnspecified() || terminating && o.Gone {
				continue
			}
			c := claim{e: fleet.Endpoint{Address: netip.AddrPortFrom(addr.Unmap(), 80).String(), Weight: 1, Zone: strings.ReplaceAll(e.Zone, "no zone", "")}}
			switch {
			case terminating:
				c.e.State = fleet.Draining
			case e.Conditions.Ready != nil && !*e.Conditions.Ready:
				c.e.State = fleet.Unhealthy
			}
			if e.TargetRef != nil {
				c.uid = e.TargetRef.UID
			}
			if len(s.Ports) == 0 || s.Ports[0].Name != "http" { // the port is lost
				if _, was := last.Index(c.e.Address); !was {
					continue
				}
				c.uid, c.e.Zone = "", ""
			}
			claims = append(claims, c)
		}
	}
	for _, address := range []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "[fd00::1]:80", "[fd00::2]:80"} {
		merged := fleet.Endpoint{Address: address, Weight: 1, State: fleet.Draining}
		uid, found := "", false
		for _, c := range claims {
			if c.e.Address == address {
				found = true
				merged.State, merged.Zone, uid = min(merged.State, c.e.State), max(merged.Zone, c.e.Zone), max(uid, c.uid)
			}
		}
		hasFour := slices.ContainsFunc(endpoints, func(e fleet.Endpoint) bool {
			return uid != "" && uidOf(claims, e.Address, func(c claim) (string, string) { return c.e.Address, c.uid }) == uid
		})
		if found && (strings.HasPrefix(address, "10.") || !hasFour) {
			endpoints = append(endpoints, merged)
		}
	}
	return endpoints
}

// uidOf is the UID behind an IPv4 address.
func uidOf[C any](claims []C, address string, of func(C) (string, string)) (uid string) {
	for _, c := range claims {
		if a, u := of(c); a == address && strings.HasPrefix(a, "10.") {
			uid = max(uid, u)
		}
	}
	return uid
}

type fataler interface{ Fatalf(string, ...any) }

// checkMembers holds a result against what is always true.
func checkMembers(t fataler, all []Slice, last fleet.Set, o Options, m Members) {
	for _, e := range m.Set.Endpoints() {
		if canonical, err := fleet.ParseAddress(e.Address); err != nil || canonical != e.Address || e.Weight != 1 || strings.ContainsAny(e.Zone, " \n\x00") {
			t.Fatalf("unusable endpoint %+v: %v", e, err)
		}
	}
	if m.Set.Len() > m.Listed+last.Len() {
		t.Fatalf("%d endpoints of %d listed", m.Set.Len(), m.Listed)
	}
	shuffled := slices.Clone(all)
	for range 3 {
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := Of(shuffled, last, o); describe(again) != describe(m) {
			t.Fatalf("another order of the slices, another membership:\n%s\nthen\n%s", describe(m), describe(again))
		}
	}
	for _, f := range m.Faults {
		if text := f.Path + f.Value + f.Message; strings.ContainsAny(text, "\n\r\x00\x1b") || len(text) > 1000 || f.Message == "" {
			t.Fatalf("a fault is not one short line: %+v", f)
		}
	}
}

// FuzzEndpointSlices reads any JSON, as lines of slices.
func FuzzEndpointSlices(f *testing.F) {
	golden, err := filepath.Glob("testdata/golden/*")
	if err != nil || len(golden) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range golden {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for block := range strings.SplitSeq(string(data), "\n\n") {
			_, input, _ := strings.Cut(block, "\n")
			input, _, _ = strings.Cut(input, "----")
			f.Add(input, "http")
		}
	}
	f.Fuzz(func(t *testing.T, text, portText string) {
		port, err := ParsePort(portText)
		if err != nil {
			return
		}
		var all []Slice
		for line := range strings.Lines(text) {
			s, err := Parse([]byte(line))
			if err != nil {
				continue
			}
			all = append(all, s)
			printed, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse(printed); err != nil {
				t.Fatalf("printed and read again: %v", err)
			}
		}
		for _, o := range []Options{{Port: port}, {Port: port, Gone: true}} {
			first := Of(all, fleet.Set{}, o)
			checkMembers(t, all, fleet.Set{}, o, first)
			checkMembers(t, all, first.Set, o, Of(all, first.Set, o))
		}
	})
}
