package config

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

const manual = "../../docs/CONFIG.md"

func readManual(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every example of the manual is read without a problem.
func TestManualExamples(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readManual(t), -1)
	if len(blocks) < 4 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, block := range blocks {
		var problems Problems
		switch text := block[1]; {
		case strings.HasPrefix(text, "# warmpath.yaml\n"):
			_, problems = Decode("example", []byte(text))
		case strings.HasPrefix(text, "# endpoints.yaml\n"):
			var list EndpointList
			list, problems = DecodeEndpoints("example", []byte(text))
			problems = append(problems, list.Problems...)
		default:
			t.Errorf("example does not begin with the name of its file:\n%s", text)
		}
		if len(problems) > 0 {
			t.Errorf("%v\n%s", problems, block[1])
		}
	}
}

// The manual has a row for every field, with its default and when a change
// takes effect, and no row for anything else.
func TestManualFields(t *testing.T) {
	leaves := Default().leaves()
	withDNS, withAPI := Default(), Default()
	withDNS.Membership.DNS, withAPI.Membership.API = defaultDNS(), &API{}
	maps.Copy(leaves, withDNS.leaves())
	maps.Copy(leaves, withAPI.leaves())
	for _, required := range []string{"file", "static", "dns.name", "dns.port"} {
		leaves["membership."+required] = "none"
	}
	withService := Default()
	withService.Membership.Kubernetes = Kubernetes{Service: "none", Terminating: Drain}
	maps.Copy(leaves, withService.leaves())
	leaves["membership.kubernetes.service"] = "none"
	row := regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)` \\| `?(.*?)`? \\|.*\\| (live|restart) \\|$")
	described := make(map[string]bool)
	for _, cells := range row.FindAllStringSubmatch(readManual(t), -1) {
		for _, path := range everyListener(cells[1]) {
			standard, changes := cells[2], cells[3]
			described[path] = true
			want, ok := leaves[path]
			if !ok {
				t.Errorf("%s is described and does not exist", path)
			}
			if !sameDefault(standard, want) {
				t.Errorf("%s: described default %s, is %s", path, standard, want)
			}
			if isLive := changes == "live"; isLive != live(path) {
				t.Errorf("%s: described as %s", path, changes)
			}
		}
	}
	for path := range leaves {
		if !described[path] {
			t.Errorf("%s is not described", path)
		}
	}
}

// everyListener returns the paths that a row is about.
func everyListener(path string) (paths []string) {
	if !strings.Contains(path, "LISTENER") {
		return []string{path}
	}
	for _, name := range []string{"extProc", "xds", "admin"} {
		paths = append(paths, strings.Replace(path, "LISTENER", name, 1))
	}
	return paths
}

// sameDefault compares the manual's words with the text of a leaf.
func sameDefault(described, leaf string) bool {
	plain := strings.NewReplacer(`"`, "", " ", "", ",", "", "[", "", "]", "")
	if plain.Replace(described) == plain.Replace(leaf) {
		return true
	}
	a, errA := time.ParseDuration(described)
	b, errB := time.ParseDuration(strings.Trim(leaf, `"`))
	return errA == nil && errB == nil && a == b
}
