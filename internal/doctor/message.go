package doctor

import (
	"strings"

	_ "github.com/cncf/xds/go/udpa/type/v1" // older trees, so that they are known
	_ "github.com/cncf/xds/go/xds/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// typedStruct is a message as a tree of JSON, with its type: xds.type.v3.TypedStruct and
// the older one of udpa.
type typedStruct interface {
	GetTypeUrl() string
	GetValue() *structpb.Struct
}

// message is what an Any holds, nil if its type is not known here.
func message(a *anypb.Any) proto.Message {
	if a == nil {
		return nil
	}
	m, err := a.UnmarshalNew()
	if err != nil {
		return nil
	}
	if tree, ok := m.(typedStruct); ok {
		return fromTree(tree)
	}
	return m
}

// fromTree makes the message that a tree stands for, nil if it cannot. What is not known
// in it is left out.
func fromTree(tree typedStruct) proto.Message {
	types, err := newOpaque()
	if err != nil {
		return nil
	}
	kind, err := types.Types.FindMessageByURL(tree.GetTypeUrl())
	if err != nil {
		return nil
	}
	text, err := protojson.Marshal(tree.GetValue())
	if err != nil {
		return nil
	}
	m := kind.New().Interface()
	if err := (protojson.UnmarshalOptions{Resolver: types, DiscardUnknown: true}).Unmarshal(text, m); err != nil {
		return nil
	}
	return m
}

// typed is a message of an extension as its place has it: the last part of its type, and
// where its fields are.
func typed(a *anypb.Any, at path) (kind string, m proto.Message, fields path) {
	url := a.GetTypeUrl()
	if raw, err := a.UnmarshalNew(); a != nil && err == nil {
		if tree, ok := raw.(typedStruct); ok {
			url, at = tree.GetTypeUrl(), at.with("value")
		}
	}
	return url[strings.LastIndexByte(url, '/')+1:], message(a), at
}
