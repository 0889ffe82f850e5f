package envoy

import (
	"fmt"
	"strings"
)

// piece is a part of bootstrap.yaml that goes into another gateway's configuration.
type piece struct {
	// title says where it goes, a line or more.
	title string
	// keys begin the parts, each with its indentation.
	keys []string
	// when is nil for always.
	when func(Options) bool
}

func fromControlPlane(o Options) bool { return o.Endpoints == nil }

func inItself(o Options) bool { return o.Endpoints != nil }

var pieces = []piece{
	{title: "Into the http_connection_manager of the listener. If it has an early_header_mutation_extensions, add\nthe mutations to it. stream_idle_timeout must outlast an engine's queue.", keys: []string{
		"          stream_idle_timeout:", "          early_header_mutation_extensions:",
	}},
	{title: "Into its http_filters, directly before envoy.filters.http.router, so that nothing that reads, holds\nor changes bodies stands between.", keys: []string{"          - name: " + ExtProcFilter}},
	{title: "Into its route_config.", keys: []string{"            validate_clusters:"}, when: fromControlPlane},
	{title: "Into the routes, in the place of the route to the model servers: keep your own match.\nThe first is for further pools only.", keys: []string{"              - name: other_pools", "              - name: pool"}, when: fromControlPlane},
	{title: "Into the routes, in the place of the route to the model servers: keep your own match.", keys: []string{"              - name: pool"}, when: inItself},
	{title: "Into static_resources.clusters: where warmpath is.", keys: []string{"  - name: " + ExtProcCluster, "  - name: " + XDSCluster}, when: fromControlPlane},
	{title: "Into static_resources.clusters: where warmpath is.", keys: []string{"  - name: " + ExtProcCluster}, when: inItself},
	{title: "To the top of the file: the cluster of the model servers comes from warmpath. Keep a node of your own.", keys: []string{"node:", "dynamic_resources:"}, when: fromControlPlane},
}

// Filter returns the parts of what [Render] returns that go into the configuration of
// a gateway that is there already: YAML documents, each with a comment that says where
// its content goes.
func Filter(o Options) ([]byte, error) {
	whole, err := Render(o)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("# What an Envoy that is there already needs so that warmpath chooses its servers. Each part goes where\n" +
		"# its heading says. Then `warmpath doctor --envoy FILE` says what is still missing.\n")
	number := 0
	section := func(title string, parts ...string) {
		number++
		fmt.Fprintf(&b, "\n---\n# %d. %s\n\n%s", number, strings.ReplaceAll(title, "\n", "\n#    "), strings.Join(parts, "\n"))
	}
	for _, p := range pieces {
		if p.when != nil && !p.when(o) {
			continue
		}
		var parts []string
		for _, key := range p.keys {
			part, err := cut(string(whole), key)
			if err != nil {
				return nil, err
			}
			parts = append(parts, dedent(part))
		}
		section(p.title, parts...)
	}
	if o.Endpoints != nil {
		cluster, err := o.ownCluster()
		if err != nil {
			return nil, err
		}
		section("Into the cluster of the model servers, which it replaces; keep its own transport_socket.", indent(cluster, "- "))
	}
	if o.Collector != "" {
		tracing, err := cut(string(whole), "          tracing:")
		if err != nil {
			return nil, err
		}
		collector, err := cut(string(whole), "  - name: "+OTLPCluster)
		if err != nil {
			return nil, err
		}
		section("Into the http_connection_manager: tracing.", dedent(tracing))
		section("Into static_resources.clusters: the collector of the traces.", dedent(collector))
	}
	return []byte(b.String()), nil
}

// cut returns the part of a YAML text that begins with a key, the comment directly
// above it included. The key is given with its indentation, and stands once.
func cut(text, key string) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	depth := len(key) - len(strings.TrimLeft(key, " "))
	item := strings.HasPrefix(key[depth:], "- ")
	start := -1
	for i, line := range lines {
		if !strings.HasPrefix(line, key) {
			continue
		}
		if rest := line[len(key):]; rest != "\n" && rest != "" && rest[0] != ' ' {
			continue // a longer name
		}
		if start >= 0 {
			return "", fmt.Errorf("bootstrap.yaml: %q occurs more than once", key)
		}
		start = i
	}
	if start < 0 {
		return "", fmt.Errorf("bootstrap.yaml: no %q", key)
	}
	end := start + 1
	for end < len(lines) && (inner(lines[end], depth, item) || strings.TrimSpace(lines[end]) == "") {
		end++
	}
	for strings.TrimSpace(lines[end-1]) == "" {
		end--
	}
	comment := strings.Repeat(" ", depth) + "#"
	for start > 0 && strings.HasPrefix(lines[start-1], comment) {
		start--
	}
	return strings.Join(lines[start:end], ""), nil
}

// inner tells whether a line belongs to what begins at a depth, a list item or a key. A
// key's list may stand as deep as the key.
func inner(line string, depth int, item bool) bool {
	content := strings.TrimLeft(line, " ")
	at := len(line) - len(content)
	return at > depth || at == depth && !item && strings.HasPrefix(content, "- ")
}

func dedent(part string) string {
	depth := len(part) - len(strings.TrimLeft(part, " "))
	return strings.ReplaceAll("\n"+part, "\n"+strings.Repeat(" ", depth), "\n")[1:]
}

// indent makes the text a list item, which begins with first, "- " after some blanks.
// The comment that precedes the text precedes the item.
func indent(text, first string) string {
	depth := strings.Repeat(" ", len(first))
	var b strings.Builder
	begun := false
	for line := range strings.Lines(text) {
		switch {
		case line == "\n":
			b.WriteString(line)
		case begun:
			b.WriteString(depth + line)
		case strings.HasPrefix(line, "#"):
			b.WriteString(depth[2:] + line)
		default:
			begun = true
			b.WriteString(first + line)
		}
	}
	return b.String()
}
