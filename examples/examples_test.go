package examples

import (
	"flag"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/discovery"
)

var rewrite = flag.Bool("rewrite", false, "write the Envoy files anew from the shipped one")

// stories are the folders with an Envoy, and the addresses that theirs has.
var stories = map[string]envoy.Addresses{
	"quickstart":  {},
	"real-engine": {},
	"compose":     {Listener: "0.0.0.0:10000", ExtProc: "warmpath:9002", XDS: "warmpath:9003"},
	"tls":         {},
	"tracing":     {},
}

// logged is where the access log of its example has its place.
const logged = "          codec_type: AUTO "

// The Envoy file of the access log is the shipped one with the access log.
func TestAccessLog(t *testing.T) {
	before, after, ok := strings.Cut(shipped(t, "quickstart"), logged)
	if !ok {
		t.Fatalf("the shipped file has no %q", logged)
	}
	want := before + read(t, "access-log/access_log.yaml") + logged + after
	const path = "access-log/envoy.yaml"
	if *rewrite {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, path); got != want {
		t.Errorf("%s is not the shipped file with access_log.yaml: run go test ./examples -rewrite", path)
	}
}

// tlsStory is what Envoy has in the story with certificates.
var tlsStory = envoy.TLS{
	ServerName: "warmpath", CA: "certs/ca.pem", Cert: "certs/envoy.pem", Key: "certs/envoy.key",
	CASecret: "./secret-ca.yaml", CertSecret: "./secret-envoy.yaml",
}

// shipped is the Envoy file that a story should have.
func shipped(t *testing.T, folder string) string {
	t.Helper()
	file, err := envoy.Bootstrap(stories[folder])
	switch {
	case err == nil && folder == "tls":
		file, err = envoy.WithTLS(file, tlsStory)
	case err == nil && folder == "tracing":
		file, err = envoy.WithTracing(file, collector(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

// collector is where the tracing story has its Jaeger, as warmpath knows it.
func collector(t *testing.T) string {
	t.Helper()
	c, err := config.Load("tracing/warmpath.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c.Tracing.OTLPEndpoint
}

// The Envoy files of the stories are the shipped one, addresses apart.
func TestEnvoyFiles(t *testing.T) {
	for folder := range stories {
		want := shipped(t, folder)
		path := filepath.Join(folder, "envoy.yaml")
		if *rewrite {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := read(t, path); got != want {
			t.Errorf("%s is not envoy/bootstrap.yaml: run go test ./examples -rewrite", path)
		}
	}
}

// The configurations are accepted, and listen where Envoy looks.
func TestConfigurations(t *testing.T) {
	for folder := range stories {
		path := filepath.Join(folder, "warmpath.yaml")
		c, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if port(t, c.Listen.ExtProc) != "9002" || port(t, c.Listen.XDS) != "9003" {
			t.Errorf("%s: listens on %s and %s, Envoy looks at ports 9002 and 9003", path, c.Listen.ExtProc, c.Listen.XDS)
		}
		if c.Cluster.Name != envoy.PoolCluster || c.Limits.RequestBodyBytes != envoy.BodyLimit {
			t.Errorf("%s: cluster %s and body limit %d differ from Envoy's file", path, c.Cluster.Name, c.Limits.RequestBodyBytes)
		}
		want := 7
		if folder == "real-engine" {
			want = 3
			if n := c.Cluster.MaxRequestsPerConnection; n != 1 {
				t.Errorf("%s: %d requests a connection: want 1, llama.cpp closes it", path, n)
			}
		}
		if n := len(members(t, folder)); n != want {
			t.Errorf("%s: %d endpoints, want %d", folder, n, want)
		}
	}
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// members returns the addresses of a story's membership file, sorted.
func members(t *testing.T, folder string) (addresses []string) {
	t.Helper()
	set, err := discovery.ReadFile(filepath.Join(folder, "endpoints.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range set.Endpoints() {
		addresses = append(addresses, e.Address)
	}
	return addresses
}

// compose is what the tests need of docker-compose.yaml.
type compose struct {
	Services map[string]struct {
		Image    string
		Command  []string
		Volumes  []string
		Networks map[string]struct {
			Address string `yaml:"ipv4_address"`
		}
	}
}

// The containers have the addresses that the membership names, and mount files
// that exist.
func TestCompose(t *testing.T) {
	var c compose
	if err := yaml.Unmarshal([]byte(read(t, "../docker-compose.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	var replicas []string
	for name, service := range c.Services {
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, err := os.Stat(filepath.Join("..", source)); err != nil {
				t.Errorf("service %s mounts %s: %v", name, source, err)
			}
		}
		if !strings.HasPrefix(name, "replica") {
			continue
		}
		address := service.Networks["llm"].Address + ":8000"
		if !slices.Contains(service.Command, address) {
			t.Errorf("service %s has the address %s, its command is %q", name, address, service.Command)
		}
		replicas = append(replicas, address)
	}
	slices.Sort(replicas)
	if want := members(t, "compose"); !slices.Equal(replicas, want) {
		t.Errorf("docker-compose.yaml has the replicas %v, the membership %v", replicas, want)
	}
	pinned := regexp.MustCompile(`(?m)^ENVOY_VERSION \?= (.*)$`).FindStringSubmatch(read(t, "../Tools.mk"))
	if pinned == nil || c.Services["envoy"].Image != "envoyproxy/envoy:v"+pinned[1] {
		t.Errorf("docker-compose.yaml has the image %q, Tools.mk pins %q", c.Services["envoy"].Image, pinned)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The access log has all that warmpath tells of a decision.
func TestAccessLogHasEveryField(t *testing.T) {
	log := read(t, "access-log/access_log.yaml")
	told := regexp.MustCompile(`(?:text|number)\("([a-z_]+)", `).FindAllStringSubmatch(read(t, "../extproc/telling.go"), -1)
	if len(told) < 12 {
		t.Errorf("extproc tells of %d fields only", len(told))
	}
	for _, field := range told {
		if !strings.Contains(log, "%DYNAMIC_METADATA(warmpath:"+field[1]+")%") {
			t.Errorf("the access log has no %s", field[1])
		}
	}
}
