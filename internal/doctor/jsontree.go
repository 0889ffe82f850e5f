package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// jsonTree reads JSON as the tree that YAML is read as: not all JSON is YAML.
type jsonTree struct {
	data         []byte
	decoder      *json.Decoder
	at           int // of data
	line, column int // there
	nodes, depth int
}

// readJSON reads a document that is valid.
func readJSON(data []byte) (*yaml.Node, error) {
	t := &jsonTree{data: data, decoder: json.NewDecoder(bytes.NewReader(data)), line: 1, column: 1}
	t.decoder.UseNumber()
	return t.value()
}

func (t *jsonTree) value() (*yaml.Node, error) {
	if t.nodes++; t.nodes > maxNodes {
		return nil, fmt.Errorf("more than %d values in it", maxNodes)
	}
	n, token, err := t.next()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if n.Kind = yaml.MappingNode; token == '[' {
			n.Kind = yaml.SequenceNode
		}
		return n, t.content(n)
	case string:
		n.Style, n.Value = yaml.DoubleQuotedStyle, token
	case json.Number:
		n.Value = token.String()
	case bool:
		n.Value = fmt.Sprint(token)
	default:
		n.Tag = "!!null"
	}
	return n, nil
}

// content reads what is in a list, or the keys and values of an object.
func (t *jsonTree) content(n *yaml.Node) error {
	if t.depth++; t.depth > maxDepth {
		return fmt.Errorf("line %d: more than %d levels deep", n.Line, maxDepth)
	}
	defer func() { t.depth-- }()
	for t.decoder.More() {
		item, err := t.value()
		if err != nil {
			return err
		}
		n.Content = append(n.Content, item)
	}
	_, _, err := t.next()
	return err
}

// next is a token, and an empty node at its place.
func (t *jsonTree) next() (*yaml.Node, json.Token, error) {
	for bytes.IndexByte([]byte(" \t\r\n,:"), t.data[t.at]) >= 0 {
		t.advance(t.at + 1)
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: t.line, Column: t.column}
	token, err := t.decoder.Token()
	t.advance(int(t.decoder.InputOffset()))
	return n, token, err
}

func (t *jsonTree) advance(to int) {
	for ; t.at < to; t.at++ {
		if t.data[t.at] == '\n' {
			t.line, t.column = t.line+1, 1
		} else if utf8.RuneStart(t.data[t.at]) {
			t.column++
		}
	}
}
