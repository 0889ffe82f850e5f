package doctor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/doctor"
)

// bomb stands for far more than it is.
const bomb = `a: &a [x, x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]
f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]
node: {metadata: {x: [*f, *f, *f, *f, *f, *f, *f, *f, *f]}}
`

// FuzzRead: whatever is read, findings have a place in it and nothing panics.
func FuzzRead(f *testing.F) {
	for _, o := range []envoy.Options{{}, own, byHeader} {
		shipped, err := envoy.Render(o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(shipped)
	}
	f.Add([]byte(`{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamic_listeners": [{"active_state": {"listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "filter_chains": [{}]}}}]}, {"@type": "x"}]}`))
	f.Add([]byte("node: &n {id: a, metadata: {a: *n}}"))
	f.Add([]byte("static_resources: {clusters: [{name: a, typed_extension_protocol_options: {x: {\"@type\": nothing/of.Ours, y: 1}}}]}\n!ignore x: y"))
	f.Add([]byte("node: {}\n? [a]\n: b"))
	f.Add([]byte("node: {}\na: .inf\nb: 2001-01-01\nc: !!binary aGk="))
	f.Fuzz(func(t *testing.T, config []byte) {
		d, err := doctor.Read("fuzzed", config)
		if err != nil {
			return
		}
		s := setup()
		s.Known, s.Members, s.ClosingEngine = len(config)%2 == 0, []string{"10.0.0.9:1"}, true
		findings, err := doctor.Examine(d, s)
		if err != nil {
			return
		}
		lines := strings.Count(string(config), "\n") + 1
		for _, found := range findings {
			if len(found.Found) > 310 || found.Line < 0 || found.Line > lines+1 || found.ID == "" || found.Fix == "" {
				t.Errorf("%d lines, %+v", lines, found)
			}
		}
	})
}

// What stands for too much, or is too deep or too large, is refused with the bound.
func TestBounds(t *testing.T) {
	for want, config := range map[string]string{
		"values in it":         bomb,
		"levels deep":          "node: {metadata: {x: " + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}}",
		"save one without":     strings.Repeat("#", doctor.MaxBytes+1),
		"nothing in it":        "# nothing\n",
		"want a mapping":       "[1, 2]",
		"neither a bootstrap":  "apiVersion: v1\nkind: ConfigMap\ndata: {admin: x}",
		"more than one":        "node: {}\n---\nnode: {}\n",
		"mapping values":       "a: b: c",
		"unexpected token 5":   "admin: 5\n",
		"a key that is no":     "node: {}\n? [a]\n: b\n",
		"invalid value for st": "node: {id: 5}",
	} {
		d, err := doctor.Read("file", []byte(config))
		if err == nil {
			_, err = doctor.Examine(d, setup())
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "file") {
			t.Errorf("%.60s: %v, want %q", config, err, want)
		}
	}
}

// A hundred times what is not understood is told of, or read as Envoy reads it; the rest is
// left out, or refused.
func TestManyAreUnknown(t *testing.T) {
	config := strings.Repeat("  - {name: a, respect_dns_ttl: \"yes\"}\n", 30)
	config = "static_resources:\n  clusters:\n" + config + strings.Repeat("  - {name: b, mine: 1}\n", 200)
	told := 0
	for _, f := range examine(t, "file", []byte(config), setup()) {
		if f.ID == "unknown" {
			told++
		}
	}
	if told != 70 {
		t.Errorf("%d are told of", told)
	}
	_, err := doctor.Examine(document(t, "file", "static_resources: {clusters: ["+strings.Repeat("{respect_dns_ttl: \"yes\"}, ", 101)+"]}"), setup())
	if err == nil || !strings.Contains(err.Error(), "invalid value for bool field") {
		t.Errorf("too many texts in the place of truth values: %v", err)
	}
}

// A value that may be a secret is not shown.
func TestSecretsAreNotShown(t *testing.T) {
	for _, config := range []string{
		"static_resources: {secrets: [{name: a, generic_secret: {secret: {inline_bytes: \"!hush!\"}}}]}",
		"static_resources: {secrets: [{name: a, generic_secret: {secret: {inline_string: {hush: 1}}}}]}",
	} {
		d, err := doctor.Read("file", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		findings, err := doctor.Examine(d, setup())
		if err == nil || strings.Contains(fmt.Sprint(err, findings), "!hush!") {
			t.Errorf("%s: %v %v", config, err, findings)
		}
	}
}

// A streamed body whose content-length is kept is worse than a streamed body.
func TestSmuggling(t *testing.T) {
	shipped, err := envoy.Bootstrap(envoy.Addresses{})
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("request_body_mode: NONE\n", "request_body_mode: STREAMED\n",
		"failure_mode_allow: true\n", "failure_mode_allow: true\n              allow_content_length_header: true\n").Replace(string(shipped))
	var ids []string
	for _, f := range examine(t, "envoy.yaml", []byte(config), setup()) {
		ids = append(ids, f.ID)
	}
	if got := strings.Join(ids, " "); got != "smuggling body-streamed" {
		t.Errorf("found %q", got)
	}
}
