package strict

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Value is one place of a document. The zero of its node is inert: every method
// does nothing, so a decoder need not ask whether parsing went well.
type Value struct {
	file string
	path string
	node *yaml.Node
	sink *Problems
}

// Field says what to do with the value of one key of a mapping.
type Field struct {
	Name string
	// Alias is a second spelling of Name; empty for none. A mapping may use
	// either, not both.
	Alias  string
	Decode func(Value)
}

// Into returns the same value with its problems going to another list.
func (v Value) Into(problems *Problems) Value {
	v.sink = problems
	return v
}

// Reject records a problem of this value: the message is the predicate to what
// stands there, as in "is below the minimum 1 (want 1..5)".
func (v Value) Reject(format string, args ...any) {
	if v.node == nil {
		v.add(Problem{Path: v.path, Message: fmt.Sprintf(format, args...)})
		return
	}
	v.add(Problem{
		Line: v.node.Line, Column: v.node.Column,
		Path: v.path, Value: show(v.node), Message: fmt.Sprintf(format, args...),
	})
}

// Report records a problem that no single value shows: of a key that the mapping
// v lacks, or, with an empty key, of v itself. The message is a whole sentence.
func (v Value) Report(key, format string, args ...any) {
	p := Problem{Path: v.path, Message: fmt.Sprintf(format, args...)}
	if key != "" {
		p.Path = v.child(key)
	}
	if v.node != nil {
		p.Line, p.Column = v.node.Line, v.node.Column
	}
	v.add(p)
}

// Pass hands on problems that were collected apart.
func (v Value) Pass(problems Problems) { *v.sink = append(*v.sink, problems...) }

// OK reports whether there is a value to decode at all.
func (v Value) OK() bool { return v.node != nil }

// Fields decodes a mapping: each known key once, an unknown or repeated one is
// a problem. A section with nothing in it is an empty mapping, since operators
// comment out what they do not want. It reports whether v was a mapping.
func (v Value) Fields(fields ...Field) bool {
	switch {
	case v.node == nil || v.refusedAlias():
		return false
	case isNull(v.node):
		return true
	case v.node.Kind != yaml.MappingNode:
		v.Reject("is not a mapping (want %s)", list(fields))
		return false
	}
	seen := make(map[string]*yaml.Node, len(v.node.Content)/2)
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		v.field(v.node.Content[i], v.node.Content[i+1], fields, seen)
	}
	return true
}

func (v Value) field(key, value *yaml.Node, fields []Field, seen map[string]*yaml.Node) {
	name := shorten(key.Value)
	at := Value{file: v.file, path: v.child(name), node: value, sink: v.sink}
	fault := Problem{Line: key.Line, Column: key.Column, Path: at.path}
	field, known := find(fields, key)
	switch {
	case key.Kind != yaml.ScalarNode:
		fault.Path, fault.Message = v.path, "a key of this mapping is not a word"
		v.add(fault)
	case !known:
		fault.Message = "unknown field" + hint(name, fields)
		v.add(fault)
	case seen[field.Name] != nil && seen[field.Name].Value != key.Value:
		first := seen[field.Name]
		fault.Message = fmt.Sprintf("is a second spelling of %s (line %d); use one of them", first.Value, first.Line)
		v.add(fault)
	case seen[field.Name] != nil:
		fault.Message = fmt.Sprintf("duplicate key, first on line %d", seen[field.Name].Line)
		v.add(fault)
	default:
		seen[field.Name] = key
		field.Decode(at)
	}
}

func find(fields []Field, key *yaml.Node) (Field, bool) {
	for _, f := range fields {
		if key.Kind == yaml.ScalarNode && (key.Value == f.Name || f.Alias != "" && key.Value == f.Alias) {
			return f, true
		}
	}
	return Field{}, false
}

// Each decodes a list, item by item. It reports whether v was a list.
func (v Value) Each(decode func(i int, item Value)) bool {
	if v.node == nil || v.refusedAlias() {
		return false
	}
	if v.node.Kind != yaml.SequenceNode {
		v.Reject("is not a list (write [] for an empty one)")
		return false
	}
	for i, n := range v.node.Content {
		decode(i, Value{file: v.file, path: v.path + "[" + strconv.Itoa(i) + "]", node: n, sink: v.sink})
	}
	return true
}

// refusedAlias keeps aliases out: a value stands where it is used, and a small
// file cannot expand into a huge one.
func (v Value) refusedAlias() bool {
	if v.node.Kind != yaml.AliasNode {
		return false
	}
	v.Reject("is an alias, which is not read here: write the value itself")
	return true
}

func (v Value) add(p Problem) {
	p.File = v.file
	*v.sink = append(*v.sink, p)
}

func (v Value) child(key string) string {
	if v.path == "" {
		return key
	}
	return v.path + "." + key
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// show renders the offending value for a message, on one line and bounded.
func show(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "*" + shorten(n.Value)
	}
	switch {
	case isNull(n):
		return "an empty value"
	case n.ShortTag() == "!!str":
		return strconv.Quote(shorten(n.Value))
	default:
		return shorten(n.Value)
	}
}

// maxShown bounds a value in a message, in bytes.
const maxShown = 64

// pemLine begins what is written as PEM, and ends its first line.
const pemLine = "-----"

// shorten makes a value fit a message: bounded, on one line, nothing that moves
// the cursor or reorders the text, and of a key or certificate only what it is.
func shorten(s string) string {
	if begin, rest, ok := strings.Cut(s, pemLine); ok {
		kind, _, _ := strings.Cut(rest, pemLine)
		s = begin[:min(len(begin), maxShown/2)] + pemLine + kind[:min(len(kind), maxShown/2)] + "…"
	}
	if len(s) > maxShown {
		cut := maxShown
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
