package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/certificate"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/envoybin"
)

// The files that name Envoy's secrets are as the library writes them.
func TestSecrets(t *testing.T) {
	ca, cert, err := tlsStory.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{tlsStory.CASecret: ca, tlsStory.CertSecret: cert} {
		path := filepath.Join("tls", name)
		if *rewrite {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := read(t, path); got != string(want) {
			t.Errorf("%s is not what it should be: run go test ./examples -rewrite", path)
		}
	}
}

// The script makes certificates that warmpath and Envoy take, again and again.
func TestCertificates(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("tls")); err != nil {
		t.Fatal(err)
	}
	script := func() {
		t.Helper()
		command := exec.CommandContext(t.Context(), "./certificates.sh")
		command.Dir = folder
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("certificates.sh: %v\n%s", err, out)
		}
	}
	script()
	c, err := config.Load(filepath.Join(folder, "warmpath.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]config.ListenerTLS{"extProc": c.TLS.ExtProc, "xds": c.TLS.XDS} {
		l = l.Paths(filepath.Join(folder, "warmpath.yaml"))
		files := certificate.Files{Cert: l.Cert, Key: l.Key, ClientCA: l.ClientCA, ClientNames: l.ClientNames}
		if problems, warnings := certificate.Inspect(files, time.Now()); len(problems)+len(warnings) > 0 {
			t.Errorf("%s: %v %v", name, problems, warnings)
		}
	}
	validate(t, folder)
	before := read(t, filepath.Join(folder, "certs/warmpath.pem")) + read(t, filepath.Join(folder, "certs/ca.pem"))
	script()
	after := read(t, filepath.Join(folder, "certs/warmpath.pem")) + read(t, filepath.Join(folder, "certs/ca.pem"))
	if before == after || before[len(before)-40:] != after[len(after)-40:] {
		t.Error("run again, the script does not replace the certificate and keep the authority")
	}
	left, err := filepath.Glob(filepath.Join(folder, "certs/*"))
	if err != nil || len(left) != 7 {
		t.Errorf("%q is left (%v)", left, err)
	}
	if slices.ContainsFunc(left, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.Mode().Perm()&0o077 != 0
	}) {
		t.Error("others can read what the script made")
	}
}

// validate has the real Envoy check the folder's configuration, and the files that
// it names.
func validate(t *testing.T, folder string) {
	t.Helper()
	root, err := envoybin.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	binary, _, err := envoybin.Find(t.Context(), envoybin.PlacesFrom(os.Getenv, root))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), binary, "--mode", "validate", "--disable-hot-restart", "-l", "warn", "-c", "envoy.yaml")
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("Envoy refuses it: %v\n%s", err, out)
	}
}
