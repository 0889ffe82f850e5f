package xds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/fleet"
)

func setOf(t testing.TB, endpoints ...fleet.Endpoint) fleet.Set {
	t.Helper()
	set, duplicates := fleet.NewSet(endpoints)
	if len(duplicates) > 0 {
		t.Fatalf("duplicate addresses %q", duplicates)
	}
	return set
}

func host(address string) fleet.Endpoint {
	return fleet.Endpoint{Address: address, Weight: 1}
}

// golden compares a message with testdata/name. protojson varies its white space
// on purpose, so the form on disk is encoding/json's.
func golden(t *testing.T, name string, m proto.Message) {
	t.Helper()
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetIndent("", "  ")
	if err := enc.Encode(tree); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestNewClusterGolden(t *testing.T) {
	shipped, err := NewCluster(Options{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "cluster.json", shipped)
}

func TestLoadAssignmentGolden(t *testing.T) {
	cla, err := LoadAssignment("pool/1", setOf(
		t,
		fleet.Endpoint{Address: "10.0.0.2:8000", Weight: 2, State: fleet.Draining, Zone: "b"},
		fleet.Endpoint{Address: "10.0.0.10:8000", Weight: 1000, State: fleet.Unhealthy, Zone: "a"},
		fleet.Endpoint{Address: "[2001:db8::1]:8000", Weight: 1, Zone: "b"},
		fleet.Endpoint{Address: "10.0.0.1:8000", Weight: 1},
	))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "assignment.json", cla)
	empty, err := LoadAssignment("pool/1", fleet.Set{})
	if err != nil || len(empty.GetEndpoints()) != 0 {
		t.Errorf("the empty set: %v, %v", empty, err)
	}
}

func TestServiceNameFollowsTheContent(t *testing.T) {
	name := func(o Options) string {
		t.Helper()
		c, err := NewCluster(o)
		if err != nil {
			t.Fatal(err)
		}
		return serviceName(c)
	}
	shipped := name(Options{})
	otherName := strings.Replace(string(envoy.Cluster()), "service_name: warmpath_pool", "service_name: x", 1)
	if again := name(Options{Cluster: []byte(otherName), ConnectTimeout: time.Second}); again != shipped {
		t.Errorf("one content has two names, %s and %s", shipped, again)
	}
	for _, o := range []Options{{Name: "other"}, {ConnectTimeout: 2 * time.Second}, {MaxRequestsPerConnection: 1}} {
		if got := name(o); got == shipped {
			t.Errorf("NewCluster(%+v) keeps the service name %s", o, got)
		}
	}
}

func TestNewClusterRefuses(t *testing.T) {
	edit := func(before, after string) []byte {
		s := string(envoy.Cluster())
		if !strings.Contains(s, before) {
			t.Fatalf("cluster.yaml has no %q", before)
		}
		return []byte(strings.Replace(s, before, after, 1))
	}
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"not YAML", Options{Cluster: []byte("\t{")}, "YAML"},
		{"unknown field", Options{Cluster: edit("connect_timeout:", "conect_timeout:")}, "conect_timeout"},
		{"not EDS", Options{Cluster: edit("type: EDS", "type: STATIC")}, "want type EDS"},
		{"not over ADS", Options{Cluster: edit("{ads: {}, ", "{path_config_source: {path: /x}, ")}, "eds_config {ads: {}}"},
		{"options of another type", Options{MaxRequestsPerConnection: 1, Cluster: []byte(strings.Replace(withOptions, "HttpProtocolOptions\n    common_http_protocol_options: {idle_timeout: 7s, max_requests_per_connection: 9}\n    explicit_http_config: {http2_protocol_options: {}}", "HttpProtocolOptions.ExplicitHttpConfig\n    http2_protocol_options: {}", 1))}, "read its envoy.extensions"},
		{"negative timeout", Options{ConnectTimeout: -time.Second}, "-1s"},
		{"outer constraint", Options{Cluster: edit("connect_timeout: 1s", "connect_timeout: 0s")}, "ConnectTimeout"},
		{"constraint inside an Any", Options{Cluster: edit("- metadata: {key: envoy.lb,", "- metadata: {key: '',")}, "override_host.v3.OverrideHost"},
		{"constraint inside an Any inside an Any", Options{Cluster: edit("hash_balance_factor: 125", "hash_balance_factor: 12")}, "ring_hash.v3.RingHash"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewCluster(tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestLoadAssignmentRefuses(t *testing.T) {
	for _, tt := range []struct {
		e    fleet.Endpoint
		want string
	}{
		{host("gpu-1.example:8000"), "want ip:port"},
		{fleet.Endpoint{Address: "10.0.0.1:1", Weight: 0}, "weight 0, want 1..1000"},
		{fleet.Endpoint{Address: "10.0.0.1:1", Weight: 1001}, "weight 1001, want 1..1000"},
		{fleet.Endpoint{Address: "10.0.0.1:1", Weight: 1, State: 9}, "state(9)"},
	} {
		_, err := LoadAssignment("pool", setOf(t, tt.e))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("LoadAssignment(%+v) error %v, want one with %q", tt.e, err, tt.want)
		}
	}
}

// TestLoadAssignmentKeepsEveryEndpoint reads the message back, and wants one
// message for one membership in whatever order it was listed.
func TestLoadAssignmentKeepsEveryEndpoint(t *testing.T) {
	endpoint := rapid.Custom(func(t *rapid.T) fleet.Endpoint {
		return fleet.Endpoint{
			Address: rapid.SampledFrom([]string{"10.0.0.1:80", "10.0.0.1:81", "10.0.0.9:80", "10.0.0.10:80", "[::1]:80", "[2001:db8::2]:443"}).Draw(t, "address"),
			Weight:  rapid.Uint32Range(fleet.MinWeight, fleet.MaxWeight).Draw(t, "weight"),
			State:   rapid.SampledFrom([]fleet.State{fleet.Healthy, fleet.Unhealthy, fleet.Draining}).Draw(t, "state"),
			Zone:    rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		listed := rapid.SliceOfNDistinct(endpoint, 0, 6, func(e fleet.Endpoint) string { return e.Address }).Draw(t, "endpoints")
		shuffled := rapid.Permutation(listed).Draw(t, "shuffled")
		a, _ := fleet.NewSet(listed)
		b, _ := fleet.NewSet(shuffled)
		first, err := LoadAssignment("pool", a)
		if err != nil {
			t.Fatal(err)
		}
		second, err := LoadAssignment("pool", b)
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(first, second) {
			t.Fatalf("the order of members matters:\n%v\n%v", first, second)
		}
		var back []fleet.Endpoint
		states := map[string]fleet.State{"HEALTHY": fleet.Healthy, "UNHEALTHY": fleet.Unhealthy, "DRAINING": fleet.Draining}
		for _, zone := range first.GetEndpoints() {
			for _, e := range zone.GetLbEndpoints() {
				sa := e.GetEndpoint().GetAddress().GetSocketAddress()
				back = append(back, fleet.Endpoint{
					Address: net.JoinHostPort(sa.GetAddress(), strconv.Itoa(int(sa.GetPortValue()))), Weight: e.GetLoadBalancingWeight().GetValue(),
					State: states[e.GetHealthStatus().String()], Zone: zone.GetLocality().GetZone(),
				})
			}
		}
		if got, _ := fleet.NewSet(back); !got.Equal(a) {
			t.Fatalf("read back %v, want %v", got.Endpoints(), a.Endpoints())
		}
	})
}

// Envoy wants priorities from 0 without a gap, and refuses the whole list otherwise.
func TestPrioritiesHaveNoGap(t *testing.T) {
	a, b, c := host("10.0.0.1:80"), host("10.0.0.2:80"), host("10.0.0.3:80")
	a.Priority, b.Priority, c.Priority, c.Zone = 5, 2, 2, "z"
	cla, err := LoadAssignment("s", setOf(t, a, b, c))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, group := range cla.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			got = append(got, fmt.Sprintf("%d%s %s", group.GetPriority(), group.GetLocality().GetZone(), e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()))
		}
	}
	if want := []string{"0 10.0.0.2", "0z 10.0.0.3", "1 10.0.0.1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	a.Priority = fleet.MaxPriority + 1
	if _, err := LoadAssignment("s", setOf(t, a)); err == nil || !strings.Contains(err.Error(), "priority 10, want 0..9") {
		t.Errorf("a priority too high: %v", err)
	}
}
