package doctor

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

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
