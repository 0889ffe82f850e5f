package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// converter writes a tree as JSON, as Envoy reads it, every value on a line of its own, so
// that an error of the JSON's reader leads back to its node.
type converter struct {
	out   bytes.Buffer
	lines []entry // of each line, from 0
	nodes int
	depth int
	// without are keys and items that are left out.
	without map[*yaml.Node]bool
	// truths are texts that stand for a truth value where they are.
	truths map[*yaml.Node]bool
}

// entry is a value, with its key or, in a list, itself and its index.
type entry struct {
	key, value    *yaml.Node
	within, index int // within is the line of what it is in
}

// convert starts anew with a tree of a kind.
func (c *converter) convert(root *yaml.Node, k kind) error {
	c.out.Reset()
	c.lines, c.nodes, c.depth = append(c.lines[:0], entry{key: root, value: root}), 0, 0
	return c.value(root, k)
}

func (c *converter) line(e entry) {
	c.out.WriteByte('\n')
	c.lines = append(c.lines, e)
}

func (c *converter) value(n *yaml.Node, k kind) error {
	n = resolve(n)
	if c.nodes++; n == nil || c.nodes > maxNodes || c.out.Len() > 4*MaxBytes {
		return fmt.Errorf("more than %d values in it, with those that aliases stand for", maxNodes)
	}
	if c.depth++; c.depth > maxDepth {
		return fmt.Errorf("line %d: more than %d levels deep", n.Line, maxDepth)
	}
	defer func() { c.depth-- }()
	switch n.Kind {
	case yaml.MappingNode:
		return c.mapping(n, k)
	case yaml.SequenceNode:
		return c.sequence(n, k)
	default:
		c.scalar(n, k)
		return nil
	}
}

func (c *converter) sequence(n *yaml.Node, k kind) error {
	c.out.WriteByte('[')
	defer c.out.WriteByte(']')
	written, here := 0, len(c.lines)-1
	for i, item := range n.Content {
		if c.without[item] {
			continue
		}
		if written++; written > 1 {
			c.out.WriteByte(',')
		}
		c.line(entry{item, item, here, i})
		if err := c.value(item, k); err != nil {
			return err
		}
	}
	return nil
}

// mapping leaves out what Envoy leaves out, and the content of types that are not known
// here. Of a key that is there twice Envoy takes the last.
func (c *converter) mapping(n *yaml.Node, k kind) error {
	c.out.WriteByte('{')
	defer c.out.WriteByte('}')
	last := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key that is no word", key.Line)
		}
		if key.Tag != "!ignore" && !c.without[key] {
			last[key.Value] = i
		}
	}
	unknown := false
	if i, is := last["@type"]; is {
		_, err := protoregistry.GlobalTypes.FindMessageByURL(n.Content[i+1].Value)
		unknown = err != nil
	}
	k = k.inside(n, last)
	written, here := 0, len(c.lines)-1
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if at, is := last[key.Value]; !is || at != i || unknown && key.Value != "@type" {
			continue
		}
		if written++; written > 1 {
			c.out.WriteByte(',')
		}
		c.line(entry{key, value, here, 0})
		c.quote(key.Value)
		c.out.WriteByte(':')
		if err := c.value(value, k.field(n, last, key.Value)); err != nil {
			return err
		}
	}
	return nil
}

func (c *converter) quote(s string) {
	text, err := json.Marshal(s)
	if err != nil { // cannot be: a string always has a JSON form
		text = []byte(`""`)
	}
	c.out.Write(text)
}
