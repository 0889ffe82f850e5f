package envoypolicy

import (
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
)

// readText reads the namespace out of the text form of an
// envoy.config.core.v3.Metadata.
func (r *Resolver) readText(origin Origin, text string) outcome {
	s, err := structOfText(text)
	if err != nil {
		return failed(&Fault{Origin: origin, Problem: Malformed, Value: quote(text), Want: err.Error()})
	}
	return r.ofStruct(origin, s)
}

// structOfText returns filter_metadata[Namespace], nil if there is none.
func structOfText(text string) (*structpb.Struct, error) {
	root, err := parseText(text)
	if err != nil {
		return nil, err
	}
	var found *node
	for i := range root.nodes {
		entry := &root.nodes[i]
		if entry.name != "filter_metadata" {
			continue
		}
		if key := entry.child("key"); key != nil && key.scalar == Namespace {
			found = entry
		}
	}
	if found == nil {
		return nil, nil
	}
	return structOf(found.child("value"))
}

// structOf reads a google.protobuf.Struct.
func structOf(n *node) (*structpb.Struct, error) {
	s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	if n == nil {
		return s, nil
	}
	if n.list || n.scalar != "" {
		return nil, errHidden
	}
	for i := range n.nodes {
		entry := &n.nodes[i]
		if entry.name != "fields" {
			return nil, fmt.Errorf("%s where an object's fields should be", quote(entry.name))
		}
		name := ""
		if key := entry.child("key"); key != nil {
			name = key.scalar
		}
		v, err := valueOf(entry.child("value"))
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", quote(name), err)
		}
		s.Fields[name] = v
	}
	return s, nil
}

var errHidden = errors.New("the value is hidden, want it in the cluster metadata or the initial metadata")

// valueOf reads a google.protobuf.Value.
func valueOf(n *node) (*structpb.Value, error) {
	if n == nil || len(n.nodes) == 0 && !n.list && n.scalar == "" {
		return structpb.NewNullValue(), nil
	}
	if n.list || n.scalar != "" {
		return nil, errHidden
	}
	kind := &n.nodes[len(n.nodes)-1] // of a oneof the last counts
	if kind.list {
		return nil, errHidden
	}
	switch kind.name {
	case "number_value":
		f, err := strconv.ParseFloat(kind.scalar, 64)
		if err != nil {
			return nil, fmt.Errorf("number %s, want one", quote(kind.scalar))
		}
		return structpb.NewNumberValue(f), nil
	case "string_value":
		if !kind.quoted {
			return nil, errHidden
		}
		return structpb.NewStringValue(kind.scalar), nil
	case "bool_value":
		return structpb.NewBoolValue(kind.scalar == "true"), nil
	case "struct_value":
		s, err := structOf(kind)
		return structpb.NewStructValue(s), err
	case "list_value": // no field of a policy is one, so its elements do not matter
		return structpb.NewListValue(&structpb.ListValue{}), nil
	case "null_value":
		return structpb.NewNullValue(), nil
	default:
		return nil, fmt.Errorf("%s where a value should be", quote(kind.name))
	}
}
