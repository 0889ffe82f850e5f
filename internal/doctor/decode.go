package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// maxAttempts bounds how often a document is read again, without what was not understood;
// large ones are read less often.
const maxAttempts = 100

// complaint is what was not understood, and where.
type complaint struct {
	text string
	at   path
}

// decode reads the tree as a message. What is not known is told of and left out; the error
// says what Envoy cannot read in any version.
func (d *Document) decode(m proto.Message) (complaints []complaint, err error) {
	types, err := newOpaque()
	if err != nil {
		return nil, err
	}
	c := &converter{without: map[*yaml.Node]bool{}, truths: map[*yaml.Node]bool{}}
	for attempt, spent := 0, 0; ; attempt++ {
		if err := c.convert(d.root, kind{message: m.ProtoReflect().Descriptor()}); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		spent += c.nodes
		last := attempt == maxAttempts || spent > maxNodes
		read := protojson.UnmarshalOptions{Resolver: types, DiscardUnknown: last}
		err := read.Unmarshal(c.out.Bytes(), m)
		if err == nil {
			return complaints, nil
		}
		bad, reason := c.blame(err)
		switch value := resolve(bad.value); {
		case !last && truthField.MatchString(reason) && value.Kind == yaml.ScalarNode && truthText.MatchString(value.Value):
			c.truths[value] = true
		case !last && unknown.MatchString(reason):
			c.without[bad.key] = true
			complaints = append(complaints, complaint{reason, c.path(bad)})
		default:
			return nil, fmt.Errorf("%s:%d:%d: %.300s", d.name, bad.key.Line, bad.key.Column, reason)
		}
	}
}

// secret is what may hold one: the value of a text that is not as it should be.
var secret = regexp.MustCompile(`(?s)^(invalid value for (?:string|bytes) field \S+): .*$`)

// What protojson says of what a later Envoy may know, and of a text where a truth value is
// wanted, which Envoy takes in these forms.
var (
	unknown    = regexp.MustCompile(`^(unknown field |invalid value for enum field )`)
	truthField = regexp.MustCompile(`^invalid value for bool field \S+: "`)
	truthText  = regexp.MustCompile(`(?i)^(true|t|yes|y|1|false|f|no|n|0)$`)
)

var located = regexp.MustCompile(`(?s)\(line (\d+):\d+\): (.*)$`)

// blame finds the node of an error.
func (c *converter) blame(err error) (entry, string) {
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

// path leads to an entry.
func (c *converter) path(e entry) (p path) {
	for ; e.key != c.lines[0].key; e = c.lines[e.within] {
		if e.key == e.value {
			p = append(p, index(e.index))
		} else {
			p = append(p, e.key.Value)
		}
	}
	slices.Reverse(p)
	return p
}
