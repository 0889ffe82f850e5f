package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"go.yaml.in/yaml/v3"
)

// Bounds of what is read.
const (
	// MaxBytes bounds a configuration; the dump of an Envoy with 10,000 endpoints has 8 MiB.
	MaxBytes = 32 << 20
	maxNodes = 1_500_000 // after aliases
	maxDepth = 200
)

// Document is a configuration as a tree, with its places.
type Document struct {
	name string
	root *yaml.Node
	// live: it was asked for, so that its lines tell nobody anything.
	live  bool
	stats map[string]float64
}

// Read reads an Envoy bootstrap or a dump of its configuration, YAML or JSON. The name
// is for findings. The error says what is not YAML, or beyond the bounds.
func Read(name string, data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%s: more than %d bytes; of a dump, save one without ?include_eds, which has no endpoints, and name it with --envoy", name, MaxBytes)
	}
	read := readYAML
	if json.Valid(data) {
		read = readJSON
	}
	root, err := read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	top := resolve(root)
	if top == nil || top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: want a mapping: an Envoy bootstrap, or what its admin listener answers to /config_dump", name)
	}
	d := &Document{name: name, root: top}
	if len(top.Content) > 0 && !d.isKnown() {
		return nil, fmt.Errorf("%s: neither a bootstrap nor a dump of Envoy's: no key at its top is one of theirs", name)
	}
	return d, nil
}

// isKnown tells whether any key of the document is one of a bootstrap's or of a dump's.
func (d *Document) isKnown() bool {
	fields := new(bootstrapv3.Bootstrap).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if _, is := d.find(path{string(fields.Get(i).Name())}); is {
			return true
		}
	}
	_, is := d.find(path{"configs"})
	return is
}

// readYAML reads the one document that is there.
func readYAML(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	root := new(yaml.Node)
	if err := decoder.Decode(root); errors.Is(err, io.EOF) {
		return nil, errors.New("nothing in it")
	} else if err != nil {
		return nil, err
	}
	for {
		var more yaml.Node
		if err := decoder.Decode(&more); errors.Is(err, io.EOF) {
			return root, nil
		} else if top := resolve(&more); err != nil || top == nil || top.ShortTag() != "!!null" {
			return nil, errors.New("more than one document in it; Envoy reads one (the parts of `warmpath envoy --for filter` go into a file that is there)")
		}
	}
}

// Name is the name that findings have as their file.
func (d *Document) Name() string { return d.name }

// ReadLive is Read for what Envoy's admin listener answered: findings have paths, and no
// lines.
func ReadLive(name string, data []byte) (*Document, error) {
	d, err := Read(name, data)
	if d != nil {
		d.live = true
	}
	return d, err
}

// resolve follows documents and aliases to what they stand for.
func resolve(n *yaml.Node) *yaml.Node {
	for range maxDepth {
		switch {
		case n == nil:
			return nil
		case n.Kind == yaml.DocumentNode && len(n.Content) > 0:
			n = n.Content[0]
		case n.Kind == yaml.AliasNode:
			n = n.Alias
		default:
			return n
		}
	}
	return nil
}

// path leads to a place: names of keys, and indices as "[0]".
type path []string

func (p path) with(parts ...string) path { return append(p[:len(p):len(p)], parts...) }

func (p path) item(list string, i int) path { return p.with(list, index(i)) }

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// String is the path as it is shown.
func (p path) String() string {
	var b strings.Builder
	for _, part := range p {
		switch {
		case strings.HasPrefix(part, "["):
		case strings.Contains(part, "."):
			part = "[" + strconv.Quote(part) + "]"
		case b.Len() > 0:
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}

// find returns the node at the path, or the nearest one above that is there. The key of
// a mapping's entry is where a reader looks for it.
func (d *Document) find(p path) (at *yaml.Node, whole bool) {
	n, at := d.root, d.root
	for _, part := range p {
		var key, value *yaml.Node
		switch n = resolve(n); {
		case n == nil:
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if same(n.Content[i].Value, part) && n.Content[i].Tag != "!ignore" {
					key, value = n.Content[i], n.Content[i+1]
				}
			}
		case n.Kind == yaml.SequenceNode:
			i, err := strconv.Atoi(strings.Trim(part, "[]"))
			if err == nil && i >= 0 && i < len(n.Content) {
				key, value = n.Content[i], n.Content[i]
			}
		}
		if value == nil {
			return at, false
		}
		at, n = key, value
	}
	return at, true
}

// same compares names of fields, in either of their spellings.
func same(a, b string) bool {
	return a == b || strings.EqualFold(strings.ReplaceAll(a, "_", ""), strings.ReplaceAll(b, "_", ""))
}

// place makes a finding's place of a path.
func (d *Document) place(f *Finding, p path) {
	f.File, f.Path = d.name, p.String()
	if at, _ := d.find(p); at != nil && !d.live {
		f.Line, f.Column = at.Line, at.Column
	}
}
