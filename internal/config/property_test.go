package config

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
)

// drawPools returns pools with what they have of their own.
func drawPools(t *rapid.T) (pools []NamedPool) {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z][A-Za-z0-9._-]{0,20}`), 0, 3, rapid.ID).Draw(t, "pools")
	for i, name := range names {
		p := NamedPool{Name: name, Pool: defaultPool()}
		p.Cluster.Name = ClusterPrefix + name
		p.Membership.File = name + ".yaml"
		for _, model := range rapid.SliceOfNDistinct(rapid.StringMatching(`[ -)+-~]{1,20}[*]?`), 0, 3, rapid.ID).Draw(t, "models") {
			p.Models = append(p.Models, fmt.Sprint(i, model)) // of no other pool
		}
		p.RoutingConfig.PrefixAware.PrefixLength = drawLength(t)
		p.Shadow = drawTrial(t)
		pools = append(pools, p)
	}
	return pools
}

func drawTrial(t *rapid.T) Trial {
	x := defaultTrial(defaultPool().RoutingConfig)
	x.Share = rapid.Float64Range(0, 1).Draw(t, "share")
	x.ShareLength = rapid.IntRange(route.LevelChars, route.MaxPrefixLength).Draw(t, "share length")
	x.RoutingStrategy = rapid.SampledFrom([]Strategy{Random, LeastOutstandingRequests, PrefixAware, KVAware}).Draw(t, "strategy on trial")
	x.PrefixAware.PrefixLength = drawLength(t)
	return x
}

func drawConfig(t *rapid.T) Config {
	c := Default()
	// Distinct ports, so that no two listeners collide.
	port := rapid.IntRange(1, 60000).Draw(t, "port")
	host := rapid.SampledFrom([]string{"", "localhost", "127.0.0.1", "[::1]"}).Draw(t, "host")
	c.Listen.ExtProc = fmt.Sprintf("%s:%d", host, port)
	c.Listen.XDS = rapid.SampledFrom([]string{"", fmt.Sprintf(":%d", port+1)}).Draw(t, "xds")
	c.Listen.Admin = rapid.SampledFrom([]string{"", fmt.Sprintf("0.0.0.0:%d", port+2)}).Draw(t, "admin")
	if rapid.Bool().Draw(t, "sockets") {
		c.Listen.ExtProc = "unix:/" + rapid.StringMatching(`[a-z][ -.0-~]{0,50}`).Draw(t, "socket")
	}
	c.Listen.SocketMode = rapid.SampledFrom([]SocketMode{0o600, 0o660, 0o666}).Draw(t, "mode")
	for _, l := range []*ListenerTLS{&c.TLS.ExtProc, &c.TLS.XDS, &c.TLS.Admin} {
		*l = drawListenerTLS(t)
	}
	c.RoutingConfig.RoutingStrategy = rapid.SampledFrom([]Strategy{Random, LeastOutstandingRequests, PrefixAware, KVAware}).Draw(t, "strategy")
	c.RoutingConfig.PrefixAware.PrefixLength = drawLength(t)
	c.Shadow, c.Split = drawTrial(t), drawTrial(t)
	c.Routers = rapid.IntRange(1, MaxRouters).Draw(t, "routers")
	c.RoutingConfig.PrefixAware.ConcurrencyThreshold = Threshold(rapid.IntRange(0, route.MaxConcurrencyThreshold).Draw(t, "threshold"))
	c.Tenant.Header = rapid.StringMatching(`x-[a-df-fh-z0-9][a-z0-9-]{0,20}`).Draw(t, "header")
	c.Cluster.Name = rapid.StringMatching(`[A-Za-z0-9_.-]{1,60}`).Draw(t, "cluster")
	c.Cluster.ConnectTimeout = time.Duration(rapid.Int64Range(1e7, 6e10).Draw(t, "connect"))
	c.Cluster.MaxRequestsPerConnection = rapid.Uint32Range(0, 1_000_000).Draw(t, "requests a connection")
	c.Limits.RequestBodyBytes = rapid.Int64Range(route.MaxPrefixLength, 256<<20).Draw(t, "body")
	c.Limits.TotalBodyBytes = rapid.Int64Range(256<<20, 1<<40).Draw(t, "total")
	c.Limits.Requests = rapid.Int64Range(1, 10_000_000).Draw(t, "requests")
	c.Limits.InflateBytes = rapid.Int64Range(route.MaxPrefixLength, 1<<30).Draw(t, "inflate")
	c.Retry.Conditions = rapid.SliceOfNDistinct(rapid.SampledFrom(retryConditions()), 0, 4, rapid.ID).Draw(t, "conditions")
	c.Retry.Attempts = rapid.IntRange(0, MaxAttempts).Draw(t, "attempts")
	c.Tracing.OTLPEndpoint = rapid.SampledFrom([]string{"", "collector:4317", "[::1]:1"}).Draw(t, "otlp")
	c.Tracing.Insecure = rapid.Bool().Draw(t, "insecure")
	c.Tracing.SampleRatio = rapid.Float64Range(0, 1).Draw(t, "ratio")
	c.Pools = drawPools(t)
	if c.Adapters.Sticky = rapid.IntRange(0, 1000).Draw(t, "sticky"); c.Adapters.Sticky > 0 {
		c.Adapters.Models = rapid.SampledFrom([][]string{{}, {"a*", "b"}}).Draw(t, "adapters")
		c.Adapters.Refresh = rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "refresh")
	}
	c.Zone = rapid.SampledFrom([]string{"", "eu-1a"}).Draw(t, "own zone")
	c.Component.Header = rapid.SampledFrom([]string{"y-component", "x-amzn-sagemaker-inference-component"}).Draw(t, "component header")
	c.Gossip = drawGossip(t)
	c.Recording = Recording{
		Folder:      rapid.SampledFrom([]string{"", "recordings", "/var/lib/warmpath"}).Draw(t, "folder"),
		SampleRatio: rapid.Float64Range(0, 1).Draw(t, "sample"),
		FileBytes:   rapid.Int64Range(1<<20, 16<<30).Draw(t, "file bytes"),
		Files:       rapid.IntRange(1, 1000).Draw(t, "files"),
		SaltFile:    rapid.SampledFrom([]string{"", "salt"}).Draw(t, "salt"),
	}
	c.Log.Level = rapid.SampledFrom([]LogLevel{LogDebug, LogInfo, LogWarn, LogError}).Draw(t, "level")
	c.Log.Format = rapid.SampledFrom([]LogFormat{LogText, LogJSON}).Draw(t, "format")
	c.Membership.DrainTimeout = time.Duration(rapid.Int64Range(0, int64(maxDrainTimeout)).Draw(t, "drain"))
	drawSource(t, &c)
	return c
}

// drawSource draws where the endpoints come from.
func drawSource(t *rapid.T, c *Config) {
	source := rapid.SampledFrom([]string{"file", "static", "dns", "api", "kubernetes"}).Draw(t, "source")
	switch {
	case source == "file":
		c.Membership.File = rapid.StringMatching(`[ -~éλ]{1,30}`).Draw(t, "path")
	case source == "kubernetes":
		c.Membership.Kubernetes = drawKubernetes(t)
	case source == "dns":
		d := defaultDNS()
		d.Name = rapid.StringMatching(`([a-z0-9_-]{1,10}[.]){0,3}[a-z]{1,5}[.]?`).Draw(t, "name")
		d.Type = rapid.SampledFrom([]DNSType{DNSAddress, DNSService}).Draw(t, "type")
		if d.Type == DNSAddress {
			d.Port = rapid.IntRange(1, 65535).Draw(t, "port")
		}
		d.Family = rapid.SampledFrom([]DNSFamily{DNSAny, DNSIPv4, DNSIPv6}).Draw(t, "family")
		d.Interval = time.Duration(rapid.Int64Range(1e8, 36e11).Draw(t, "interval"))
		d.Server = rapid.SampledFrom([]string{"", "10.96.0.10:53", "[fd00::1]:5353"}).Draw(t, "server")
		d.TCP = rapid.Bool().Draw(t, "tcp")
		c.Membership.DNS = d
	case source == "api" && c.Listen.Admin != "" && c.TLS.Admin.Mutual():
		c.Membership.API = &API{StateFile: rapid.StringMatching(`[ -~éλ]{0,30}`).Draw(t, "state file")}
	default:
		c.Membership.Static = rapid.SliceOfNDistinct(rapid.Custom(drawEndpoint), 0, 5, func(e fleet.Endpoint) string { return e.Address }).Draw(t, "static")
	}
}

func drawKubernetes(t *rapid.T) Kubernetes {
	name := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`)
	return Kubernetes{
		Service:     name.Draw(t, "service"),
		Namespace:   rapid.OneOf(rapid.Just(""), name).Draw(t, "namespace"),
		Port:        rapid.SampledFrom([]string{"", "8000", "http", "65535"}).Draw(t, "service port"),
		Terminating: rapid.SampledFrom([]Terminating{Drain, Gone}).Draw(t, "terminating"),
		APIServer:   rapid.SampledFrom([]string{"", "https://10.0.0.1:6443", "https://[::1]/k8s/c-1"}).Draw(t, "api server"),
		TokenFile:   rapid.SampledFrom([]string{"", "token"}).Draw(t, "token"),
		CAFile:      rapid.SampledFrom([]string{"", "/ca.crt"}).Draw(t, "authorities"),
	}
}

func drawGossip(t *rapid.T) Gossip {
	if rapid.Bool().Draw(t, "no gossip") {
		return Gossip{Join: []string{}}
	}
	return Gossip{
		Listen:    rapid.SampledFrom([]string{"10.0.0.7:65000", "[::]:65001"}).Draw(t, "gossip"),
		Advertise: rapid.SampledFrom([]string{"", "192.0.2.1:1", "[fd00::1]:65535"}).Draw(t, "advertise"),
		Join:      rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a:1", "warmpath.llm.svc:9005", "[fd00::2]:9005", "10.0.0.8:9005"}), 0, 3, rapid.ID).Draw(t, "join"),
		KeyFile:   rapid.SampledFrom([]string{"", "gossip.key"}).Draw(t, "key file"),
	}
}

func drawListenerTLS(t *rapid.T) (l ListenerTLS) {
	path := rapid.StringMatching(`[ -~éλ]{1,30}`)
	if level := rapid.IntRange(0, 3).Draw(t, "tls"); level > 0 {
		l.Cert, l.Key = path.Draw(t, "cert"), path.Draw(t, "key")
		if level > 1 {
			l.ClientCA = path.Draw(t, "ca")
		}
		if level > 2 {
			l.ClientNames = rapid.SliceOfN(rapid.SampledFrom([]string{"envoy", "envoy.example", "spiffe://a/b?c"}), 0, 3).Draw(t, "names")
		}
	}
	return l
}

func drawLength(t *rapid.T) Length {
	if rapid.Bool().Draw(t, "auto") {
		return AutoLength
	}
	return Length(rapid.IntRange(route.MinPrefixLength, route.MaxPrefixLength).Draw(t, "length"))
}

func drawEndpoint(t *rapid.T) fleet.Endpoint {
	last := byte(rapid.IntRange(1, 254).Draw(t, "address"))
	return fleet.Endpoint{
		Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, last}), 8000).String(),
		Weight:  rapid.Uint32Range(fleet.MinWeight, fleet.MaxWeight).Draw(t, "weight"),
		State:   rapid.SampledFrom([]fleet.State{fleet.Healthy, fleet.Unhealthy, fleet.Draining}).Draw(t, "state"),
		Zone:    rapid.StringMatching(`[!-~]{0,12}`).Draw(t, "zone"),

		Priority: rapid.Uint8Range(0, fleet.MaxPriority).Draw(t, "priority"),
		Instance: rapid.StringMatching(`[!-~]{0,12}`).Draw(t, "instance"),
		Adapters: fleet.NewNames(rapid.SliceOf(rapid.StringMatching(`[!-)+-~]{1,5}`)).Draw(t, "adapters")...),
	}
}

// What the API shows can be given back to it.
func TestEncodeEndpoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfNDistinct(rapid.Custom(drawEndpoint), 0, 5, func(e fleet.Endpoint) string { return e.Address }).Draw(t, "endpoints")
		list, problems := DecodeEndpoints("a", EncodeEndpoints(want))
		if problems = append(problems, list.Problems...); len(problems) > 0 || !slices.Equal(list.Endpoints, want) {
			t.Fatalf("problems %v, got %v, want %v", problems, list.Endpoints, want)
		}
	})
}

func TestYAMLRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawConfig(t)
		got, problems := Decode("a", want.YAML())
		if diff := cmp.Diff(want, got, compareConfigs); diff != "" || len(problems) > 0 {
			t.Fatalf("problems %v, -want +got\n%s\n%s", problems, diff, want)
		}
		if d := Diff(want, got); len(d) > 0 {
			t.Fatalf("equal configurations differ in %v", d)
		}
	})
}

// What a reload leaves over is exactly what waits for the restart, and nothing
// that runs is half old and half new.
func TestReload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		running, next := drawConfig(t), drawConfig(t)
		effective, restart := running.Reload(next)
		if d := Diff(effective, next); !slices.Equal(d, restart) {
			t.Fatalf("after the reload %v differ from the file, told %v", d, restart)
		}
		changed, live := Diff(running, next), Diff(running, effective)
		// Of pools a part may be live.
		if both := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(live), restart...)))); !slices.Equal(both, changed) {
			t.Fatalf("changed %v, live %v, restart %v", changed, live, restart)
		}
		again, rest := effective.Reload(next)
		if len(Diff(again, effective)) > 0 || !slices.Equal(rest, restart) {
			t.Fatalf("a second reload of the same file changes something")
		}
	})
}

// twin decodes as the YAML library does, into the same struct: the deliberately
// dumb second opinion on every scalar of an accepted text.
func twin(data []byte) (Config, error) {
	c := Default()
	c.Membership = Membership{}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(&c)
	return c, err
}

// UnmarshalYAML exists for the twin alone.
func (p *NamedPool) UnmarshalYAML(n *yaml.Node) error {
	type plain NamedPool
	q := plain{Pool: defaultPool()}
	q.Cluster.Name, q.Membership = "", Membership{}
	if err := n.Decode(&q); err != nil {
		return err
	}
	if q.Cluster.Name == "" {
		q.Cluster.Name = ClusterPrefix + q.Name
	}
	*p = NamedPool(q)
	return nil
}

// UnmarshalYAML exists for the twin alone.
func (t *Threshold) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == "auto" {
		*t = AutoThreshold
		return nil
	}
	return n.Decode((*int)(t))
}

// UnmarshalYAML exists for the twin alone.
func (l *Length) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == "auto" {
		*l = AutoLength
		return nil
	}
	return n.Decode((*int)(l))
}

// UnmarshalYAML exists for the twin alone.
func (m *SocketMode) UnmarshalYAML(n *yaml.Node) error {
	_, err := fmt.Sscanf(n.Value, "%o", (*uint32)(m))
	return err
}

// UnmarshalYAML exists for the twin alone; it leaves the membership out.
func (m *Membership) UnmarshalYAML(*yaml.Node) error { return nil }

func FuzzDecode(f *testing.F) {
	f.Add([]byte(sample))
	seeds, err := filepath.Glob("testdata/golden/*")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for block := range strings.SplitSeq(string(data), "\n\n") {
			_, input, _ := strings.Cut(block, "\n")
			input, _, _ = strings.Cut(input, "----")
			f.Add([]byte(unescape(input)))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, problems := Decode("f", data)
		checkProblems(t, data, problems)
		if len(problems) == 0 {
			checkAccepted(t, data, c)
		}
		list, refused := DecodeEndpoints("f", data)
		checkProblems(t, data, append(refused, list.Problems...))
		checkEndpoints(t, list)
	})
}

func checkProblems(t *testing.T, data []byte, problems Problems) {
	t.Helper()
	lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + bytes.Count(data, []byte("\u0085")) +
		bytes.Count(data, []byte("\u2028")) + bytes.Count(data, []byte("\u2029")) + 1
	for _, p := range problems {
		if p.Line > lines || p.Line < 0 || p.Message == "" {
			t.Errorf("%+v in a text of %d lines", p, lines)
		}
		if s := p.String(); strings.ContainsAny(s, "\n\r\x00\x1b") || len(s) > 1000 {
			t.Errorf("problem is not one short line: %q", s)
		}
	}
}

// checkAccepted holds an accepted text against the library's own decoder, and
// against what printing and reading again gives.
func checkAccepted(t *testing.T, data []byte, c Config) {
	t.Helper()
	again, problems := Decode("f", c.YAML())
	if diff := cmp.Diff(c, again, compareConfigs); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v, -first +again\n%s", problems, diff)
	}
	if pasted.Match(data) {
		return // the twin does not know the second spellings
	}
	other, err := twin(data)
	if err != nil {
		t.Errorf("accepted what the YAML library refuses: %v", err)
	}
	c.Membership, c.Tenant.Header, other.Tenant.Header = Membership{}, "", strings.TrimPrefix(strings.ToLower(other.Tenant.Header), c.Tenant.Header)
	c.Component.Header, other.Component.Header = "", strings.TrimPrefix(strings.ToLower(other.Component.Header), c.Component.Header)
	for i := range c.Pools {
		c.Pools[i].Membership = Membership{}
	}
	if diff := cmp.Diff(other, c, compareConfigs); diff != "" {
		t.Errorf("the YAML library reads it differently, -library +here\n%s", diff)
	}
}

var pasted = regexp.MustCompile(`RoutingConfig|RoutingStrategy|PrefixAware|PrefixLength|ConcurrencyThreshold`)

func checkEndpoints(t *testing.T, list EndpointList) {
	t.Helper()
	for _, e := range list.Endpoints {
		canonical, err := fleet.ParseAddress(e.Address)
		if err != nil || canonical != e.Address || e.Weight < fleet.MinWeight || e.Weight > fleet.MaxWeight {
			t.Errorf("unusable endpoint %+v: %v", e, err)
		}
	}
	if _, duplicates := fleet.NewSet(list.Endpoints); len(duplicates) > 0 {
		t.Errorf("duplicates %v", duplicates)
	}
	if len(list.Refused) > len(list.Problems) {
		t.Errorf("%d refused, %d problems", len(list.Refused), len(list.Problems))
	}
}
