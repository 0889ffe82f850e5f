package archtest

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const (
	module = "github.com/warmpath/warmpath"
	// root is the module's directory, seen from this package.
	root = "../.."
)

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath, Name, Doc string
	Imports               []string // of the files that are not tests
}

// path is the package's path below the module.
func (p goPackage) path() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func list(t *testing.T) (packages []goPackage) {
	t.Helper()
	var stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Doc,Imports", "./...")
	command.Dir, command.Stderr = root, &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return packages
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// The program stays useful without Kubernetes, and small: its client alone is
// larger than all the rest.
func TestNoKubernetesClient(t *testing.T) {
	for _, file := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(root + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "k8s.io/") {
				t.Errorf("%s: %s: no Kubernetes modules", file, strings.TrimSpace(line))
			}
		}
	}
}
