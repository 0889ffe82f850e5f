package doctor

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// kind is what a value is by its field: a message or a map, an enum's name, or, as the zero
// kind, anything else.
type kind struct {
	message protoreflect.MessageDescriptor // of a map, of its entries
	enum    protoreflect.EnumDescriptor
}

// inside is the kind of the fields of a mapping: of an Any they are those of its type.
func (k kind) inside(n *yaml.Node, last map[string]int) kind {
	if k.message == nil || k.message.FullName() != "google.protobuf.Any" {
		return k
	}
	return named(n, last, "@type")
}

// field is the kind of what a key leads to.
func (k kind) field(n *yaml.Node, last map[string]int, key string) kind {
	if k.message == nil {
		return kind{}
	}
	switch fields := k.message.Fields(); {
	case k.message.IsMapEntry():
		return kindOf(fields.ByNumber(2)) // the value; 1 is the key
	case k.message.Name() == "TypedStruct" && key == "value":
		return named(n, last, "type_url", "typeUrl")
	default:
		f := fields.ByJSONName(key)
		if f == nil {
			f = fields.ByTextName(key)
		}
		return kindOf(f)
	}
}

func kindOf(f protoreflect.FieldDescriptor) kind {
	if f == nil {
		return kind{}
	}
	return kind{f.Message(), f.Enum()}
}

// named is the kind of the type that one of the keys names.
func named(n *yaml.Node, last map[string]int, keys ...string) kind {
	for _, key := range keys {
		i, is := last[key]
		if !is {
			continue
		}
		if url := resolve(n.Content[i+1]); url != nil {
			if t, err := protoregistry.GlobalTypes.FindMessageByURL(url.Value); err == nil {
				return kind{message: t.Descriptor()}
			}
		}
	}
	return kind{}
}

// text writes a text. Envoy takes names of enums in any case, and numbers in quotes.
func (c *converter) text(s string, k kind) {
	if k.enum == nil {
		c.quote(s)
		return
	}
	for i := range k.enum.Values().Len() {
		if name := string(k.enum.Values().Get(i).Name()); strings.EqualFold(name, s) {
			c.quote(name)
			return
		}
	}
	if i, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32); err == nil {
		c.out.WriteString(strconv.FormatInt(i, 10))
		return
	}
	c.quote(s)
}
