// Package paste does what the headings of `warmpath envoy --for filter` tell people to
// do, so that tests see whether that is enough.
package paste

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Into puts the parts into a gateway's configuration, which has one listener with one
// connection manager, and in it a single route, to a cluster of the model servers.
func Into(gateway, parts []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(gateway, &root); err != nil {
		return nil, fmt.Errorf("the gateway: %w", err)
	}
	top := root.Content[0]
	for _, text := range strings.Split(string(parts), "\n---\n")[1:] {
		heading, _, _ := strings.Cut(text, "\n\n")
		var part yaml.Node
		if err := yaml.Unmarshal([]byte(text), &part); err != nil {
			return nil, fmt.Errorf("the part %q: %w", heading, err)
		}
		if err := put(top, part.Content[0], heading); err != nil {
			return nil, err
		}
	}
	return yaml.Marshal(&root)
}

// put puts a part where its heading says.
func put(top, part *yaml.Node, heading string) error {
	manager := get(get(top, "static_resources", "listeners", "0", "filter_chains", "0", "filters", "0"), "typed_config")
	clusters := get(top, "static_resources", "clusters")
	host := get(manager, "route_config", "virtual_hosts", "0")
	switch {
	case strings.Contains(heading, "Into the http_connection_manager"):
		set(manager, part)
	case strings.Contains(heading, "Into its http_filters"):
		filters := get(manager, "http_filters")
		last := len(filters.Content) - 1
		filters.Content = append(append(append([]*yaml.Node(nil), filters.Content[:last]...), part.Content...), filters.Content[last])
	case strings.Contains(heading, "Into its route_config"):
		set(get(manager, "route_config"), part)
	case strings.Contains(heading, "Into the routes"):
		get(host, "routes").Content = part.Content
	case strings.Contains(heading, "Into static_resources.clusters"):
		clusters.Content = append(clusters.Content, part.Content...)
	case strings.Contains(heading, "Into the cluster of the model servers"):
		clusters.Content = append(clusters.Content[1:], part.Content...)
	case strings.Contains(heading, "To the top of the file"):
		set(top, part)
	default:
		return fmt.Errorf("no heading that is known: %q", heading)
	}
	return nil
}

// get follows keys, and indices of lists.
func get(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var next *yaml.Node
		for i := 0; i < len(n.Content); i++ {
			switch {
			case n.Kind == yaml.SequenceNode && fmt.Sprint(i) == key:
				next = n.Content[i]
			case n.Kind == yaml.MappingNode && i%2 == 0 && n.Content[i].Value == key:
				next = n.Content[i+1]
			}
		}
		if next == nil {
			return &yaml.Node{Kind: yaml.MappingNode}
		}
		n = next
	}
	return n
}

// set puts all entries of a mapping into another.
func set(to, from *yaml.Node) {
	for i := 0; i+1 < len(from.Content); i += 2 {
		key := from.Content[i].Value
		found := false
		for j := 0; j+1 < len(to.Content); j += 2 {
			if to.Content[j].Value == key {
				to.Content[j+1], found = from.Content[i+1], true
			}
		}
		if !found {
			to.Content = append(to.Content, from.Content[i], from.Content[i+1])
		}
	}
}
