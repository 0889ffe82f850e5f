package examples

import (
	"os"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/config"
)

// The files for Istio are the shipped one, and the Deployment of the example for
// Kubernetes without what Istio has instead.
func TestIstio(t *testing.T) {
	shipped, err := envoy.Istio(envoy.IstioOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"istio/istio.yaml": string(shipped), "istio/deployment.yaml": meshed(t)} {
		if *rewrite {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := read(t, path); got != want {
			t.Errorf("%s is not what it is made of: run go test ./examples -rewrite", path)
		}
	}
	c, err := config.Load("istio/warmpath.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if k := c.Membership.Kubernetes; port(t, c.Listen.ExtProc) != "9002" || c.Listen.XDS != "" ||
		k.Service != "llama" || k.Port != "http" || k.Terminating != config.Gone || c.Limits.RequestBodyBytes != envoy.BodyLimit {
		t.Errorf("listen %+v, membership %+v", c.Listen, k)
	}
	// What the comment of istio.yaml wants of it, it has.
	for _, want := range []string{`xds: ""`, "service: llama, port: http, terminating: gone"} {
		if !strings.Contains(string(shipped), want) || !strings.Contains(read(t, "istio/warmpath.yaml"), want) {
			t.Errorf("%q is not in both istio.yaml and warmpath.yaml", want)
		}
	}
	// The README names the files as they are.
	readme := read(t, "istio/README.md")
	for _, file := range []string{"../kubernetes/rbac.yaml", "warmpath.yaml", "deployment.yaml", "istio.yaml"} {
		if !strings.Contains(readme, "-f "+file) && !strings.Contains(readme, "--from-file="+file) {
			t.Errorf("the README does not apply %s", file)
		}
	}
}

// meshed is the Deployment of the example for Kubernetes, for a pod without a
// sidecar and a control plane. Its Service is in istio.yaml.
func meshed(t *testing.T) string {
	t.Helper()
	text, _, ok := strings.Cut(read(t, kubernetesFolder+"deployment.yaml"), "\n---\n")
	_, text, found := strings.Cut(text, "apiVersion:")
	if !ok || !found {
		t.Fatal("examples/kubernetes/deployment.yaml is no Deployment and a Service")
	}
	text = "# The image is the one that the Dockerfile at the root builds. The Service is in istio.yaml.\napiVersion:" + text + "\n"
	for _, change := range [][2]string{
		{"        - {name: xds, containerPort: 9003}\n", ""},
		{"      labels: {app: warmpath}\n    spec:", "      # No sidecar: the gateway speaks to warmpath without TLS, or with warmpath's own (tls.extProc).\n" +
			"      labels: {app: warmpath, sidecar.istio.io/inject: \"false\"}\n    spec:"},
	} {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("examples/kubernetes/deployment.yaml has no %q, or several", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	return text
}
