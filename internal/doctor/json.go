package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// converter writes a tree as JSON, every value on a line of its own, so that an error of
// the JSON's reader leads back to its node.
type converter struct {
	out   bytes.Buffer
	lines []*yaml.Node // of each line, from 0
	nodes int
	depth int
	types opaque
}

func (c *converter) line(n *yaml.Node) {
	c.out.WriteByte('\n')
	c.lines = append(c.lines, n)
}

func (c *converter) value(n *yaml.Node) error {
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
		return c.mapping(n)
	case yaml.SequenceNode:
		c.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				c.out.WriteByte(',')
			}
			c.line(item)
			if err := c.value(item); err != nil {
				return err
			}
		}
		c.out.WriteByte(']')
		return nil
	default:
		return c.scalar(n)
	}
}

// mapping leaves out what Envoy leaves out, and the content of types that are not known
// here.
func (c *converter) mapping(n *yaml.Node) error {
	c.out.WriteByte('{')
	defer c.out.WriteByte('}')
	url, unknown := "", false
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "@type" {
			url = n.Content[i+1].Value
			_, err := protoregistry.GlobalTypes.FindMessageByURL(url)
			unknown = err != nil
		}
	}
	written := 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key that is no word", key.Line)
		}
		if unknown && key.Value != "@type" || value.Tag == "!ignore" {
			continue
		}
		if written++; written > 1 {
			c.out.WriteByte(',')
		}
		c.line(key)
		c.quote(key.Value)
		c.out.WriteByte(':')
		if err := c.value(value); err != nil {
			return err
		}
	}
	return nil
}

func (c *converter) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		c.out.WriteString("null")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return err
		}
		c.out.WriteString(strconv.FormatBool(b))
	case "!!int", "!!float":
		var number any
		if err := n.Decode(&number); err != nil {
			return err
		}
		text, err := json.Marshal(number)
		if err != nil { // .inf and .nan
			c.quote(n.Value)
			return nil
		}
		c.out.Write(text)
	default:
		c.quote(n.Value)
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

// decode reads the tree as a message: strictly, and if that fails as well as it goes.
// The node and the reason tell of what was not understood.
func (d *Document) decode(m proto.Message) (bad *yaml.Node, reason string, err error) {
	types, err := newOpaque()
	if err != nil {
		return nil, "", err
	}
	c := &converter{types: types, lines: []*yaml.Node{d.root}}
	if err := c.value(d.root); err != nil {
		return nil, "", fmt.Errorf("%s: %w", d.name, err)
	}
	strict := protojson.UnmarshalOptions{Resolver: types}
	failure := strict.Unmarshal(c.out.Bytes(), m)
	if failure == nil {
		return nil, "", nil
	}
	bad, reason = c.blame(failure)
	tolerant := protojson.UnmarshalOptions{Resolver: types, DiscardUnknown: true}
	if err := tolerant.Unmarshal(c.out.Bytes(), m); err != nil {
		bad, reason := c.blame(err)
		return nil, "", fmt.Errorf("%s:%d:%d: %.300s", d.name, bad.Line, bad.Column, reason)
	}
	return bad, reason, nil
}

// secret is what may hold one: the value of a text that is not as it should be.
var secret = regexp.MustCompile(`(?s)^(invalid value for (?:string|bytes) field \S+): .*$`)

var located = regexp.MustCompile(`(?s)\(line (\d+):\d+\): (.*)$`)

// blame finds the node of an error.
func (c *converter) blame(err error) (*yaml.Node, string) {
	text := located.FindStringSubmatch(err.Error())
	if text == nil {
		return c.lines[0], err.Error()
	}
	line, err := strconv.Atoi(text[1])
	if err != nil || line < 1 || line > len(c.lines) {
		line = 1
	}
	return c.lines[line-1], secret.ReplaceAllString(text[2], "$1")
}

// opaque resolves the types that are linked in, and takes all others for empty ones.
type opaque struct {
	*protoregistry.Types
	unknown protoreflect.MessageType
}

func newOpaque() (opaque, error) {
	name, syntax := "warmpath/doctor/opaque.proto", "proto3"
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: &name, Package: proto.String("warmpath.doctor"), Syntax: &syntax,
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Opaque")}},
	}, nil)
	if err != nil {
		return opaque{}, fmt.Errorf("describe a message without fields: %w", err)
	}
	return opaque{protoregistry.GlobalTypes, dynamicpb.NewMessageType(file.Messages().Get(0))}, nil
}

// FindMessageByURL implements the resolver of protojson.
func (o opaque) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if t, err := o.Types.FindMessageByURL(url); err == nil {
		return t, nil
	}
	return o.unknown, nil
}
