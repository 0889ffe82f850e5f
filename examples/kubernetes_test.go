package examples

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/warmpath/warmpath/internal/config"
)

const kubernetesFolder = "kubernetes/"

// manifest is the part of the objects that has to agree with something.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Rules      []struct {
		APIGroups []string `yaml:"apiGroups"`
		Resources []string
		Verbs     []string
	}
	RoleRef  struct{ Kind, Name string } `yaml:"roleRef"`
	Subjects []struct{ Kind, Name string }
	Spec     struct {
		Selector any
		Template struct {
			Spec struct {
				ServiceAccountName string `yaml:"serviceAccountName"`
				Containers         []struct {
					Args  []string
					Ports []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
				}
				Volumes []struct {
					ConfigMap struct{ Name string } `yaml:"configMap"`
				}
			}
		}
		Ports []struct {
			Port        int
			TargetPort  string `yaml:"targetPort"`
			AppProtocol string `yaml:"appProtocol"`
		}
	}
}

// manifests reads the objects of a file by their kinds. A key that is there twice
// is an error; the API server judges the rest in the tests against a real one.
func manifests(t *testing.T, name string) map[string]manifest {
	t.Helper()
	data, err := os.ReadFile(kubernetesFolder + name)
	if err != nil {
		t.Fatal(err)
	}
	objects := make(map[string]manifest)
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var m manifest
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.APIVersion == "" || m.Metadata.Name != "warmpath" {
			t.Errorf("%s: %+v", name, m)
		}
		objects[m.Kind] = m
	}
}

// The Role has what is asked of the API server and no more, and goes to the
// account of the Deployment.
func TestRole(t *testing.T) {
	rbac, deployment := manifests(t, "rbac.yaml"), manifests(t, "deployment.yaml")
	rules := rbac["Role"].Rules
	if len(rules) != 1 || !slices.Equal(rules[0].APIGroups, []string{"discovery.k8s.io"}) || !slices.Equal(rules[0].Resources, []string{"endpointslices"}) ||
		!slices.Equal(rules[0].Verbs, []string{"get", "list", "watch"}) {
		t.Errorf("rules %+v", rules)
	}
	account := rbac["ServiceAccount"].Metadata.Name
	binding := rbac["RoleBinding"]
	if binding.RoleRef.Kind != "Role" || binding.RoleRef.Name != rbac["Role"].Metadata.Name ||
		len(binding.Subjects) != 1 || binding.Subjects[0].Kind != "ServiceAccount" || binding.Subjects[0].Name != account {
		t.Errorf("binding %+v", binding)
	}
	if got := deployment["Deployment"].Spec.Template.Spec.ServiceAccountName; got != account || len(rbac) != 3 {
		t.Errorf("the Deployment runs as %q, of %d objects one is the account %q", got, len(rbac), account)
	}
}

// The Deployment serves the configuration of this folder, on the ports that it
// listens on and the Service names.
func TestDeployment(t *testing.T) {
	c, err := config.Load(kubernetesFolder + "warmpath.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := manifests(t, "deployment.yaml")
	pod := objects["Deployment"].Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.Volumes) != 1 {
		t.Fatalf("pod %+v", pod)
	}
	readme := read(t, kubernetesFolder+"README.md")
	if args := pod.Containers[0].Args; !slices.Equal(args, []string{"serve", "/etc/warmpath/warmpath.yaml"}) ||
		!strings.Contains(readme, "configmap "+pod.Volumes[0].ConfigMap.Name+" -n llm --from-file=warmpath.yaml") {
		t.Errorf("arguments %q, volume %+v", args, pod.Volumes)
	}
	want := map[string]string{"ext-proc": port(t, c.Listen.ExtProc), "xds": port(t, c.Listen.XDS), "admin": port(t, c.Listen.Admin)}
	numbers := make(map[string]int)
	for _, p := range pod.Containers[0].Ports {
		numbers[p.Name] = p.ContainerPort
		if want[p.Name] != strconv.Itoa(p.ContainerPort) {
			t.Errorf("port %s is %d, the configuration listens on %s", p.Name, p.ContainerPort, want[p.Name])
		}
	}
	service := objects["Service"].Spec.Ports
	for _, p := range service {
		if numbers[p.TargetPort] != p.Port || p.AppProtocol != "grpc" {
			t.Errorf("port of the Service %+v, those of the pod %v", p, numbers)
		}
	}
	if len(numbers) != 3 || len(service) != 2 {
		t.Errorf("%d ports in the pod, %d in the Service", len(numbers), len(service))
	}
}
