package config

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// livePaths are what a running process takes over from a changed file. The rest
// is bound to sockets, to Envoy's view of the cluster or to exporters, and
// waits for a restart.
func livePaths() []string {
	return []string{"routingConfig", "shadow", "split", "policies", "routers", "zone", "adapters.sticky", "adapters.models", "tenant", "component", "retry", "limits.inflateBytes", "limits.totalBodyBytes", "limits.requests", "inspection", "decision", "log.level"}
}

// Reload returns the configuration that a process running c should use now that
// the file says next, and the paths of the changes that wait for a restart.
func (c Config) Reload(next Config) (effective Config, restart []string) {
	effective = c
	effective.RoutingConfig, effective.Shadow, effective.Split = next.RoutingConfig, next.Shadow, next.Split
	effective.Pools = withLive(c.Pools, next.Pools)
	effective.Component = next.Component
	effective.Policies = next.Policies
	effective.Routers = next.Routers
	effective.Zone = next.Zone
	effective.Adapters.Sticky, effective.Adapters.Models = next.Adapters.Sticky, next.Adapters.Models
	effective.Tenant = next.Tenant
	effective.Retry = next.Retry
	effective.Limits.InflateBytes = next.Limits.InflateBytes
	effective.Limits.TotalBodyBytes = next.Limits.TotalBodyBytes
	effective.Limits.Requests = next.Limits.Requests
	effective.Inspection, effective.Decision = next.Inspection, next.Decision
	effective.Log.Level = next.Log.Level
	return effective, NeedsRestart(c, next)
}

// NeedsRestart returns the paths, sorted, of what differs between two
// configurations and takes effect only at a restart.
func NeedsRestart(old, next Config) []string {
	old.Pools = withLive(old.Pools, next.Pools)
	return slices.DeleteFunc(Diff(old, next), live)
}

func live(path string) bool {
	return slices.ContainsFunc(livePaths(), func(p string) bool { return path == p || strings.HasPrefix(path, p+".") })
}

// Diff returns the paths, sorted, of everything that differs. A list is one
// thing: it differs as a whole.
func Diff(old, next Config) []string {
	a, b := old.leaves(), next.leaves()
	var paths []string
	for path, text := range a {
		if b[path] != text {
			paths = append(paths, path)
		}
	}
	for path := range b {
		if _, both := a[path]; !both {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// leaves maps the path of every setting to its text.
func (c Config) leaves() map[string]string {
	var document yaml.Node
	if err := yaml.Unmarshal(c.YAML(), &document); err != nil {
		panic("config: own YAML does not parse: " + err.Error())
	}
	leaves := make(map[string]string)
	collect(document.Content[0], "", leaves)
	return leaves
}

func collect(n *yaml.Node, path string, leaves map[string]string) {
	if n.Kind != yaml.MappingNode {
		leaves[path] = text(n)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		child := n.Content[i].Value
		if path != "" {
			child = path + "." + child
		}
		collect(n.Content[i+1], child, leaves)
	}
}

// text is equal for equal values and different for different ones.
func text(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return strconv.Quote(n.Value)
	}
	var b strings.Builder
	b.WriteByte('[')
	for _, child := range n.Content {
		b.WriteString(text(child))
	}
	b.WriteByte(']')
	return b.String()
}
