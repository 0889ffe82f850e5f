package xds

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// validate checks a message against the constraints that Envoy checks, and
// those of every message packed inside it: the generated ValidateAll stops at an
// Any, which is where a load balancing policy lives.
func validate(m proto.Message) error {
	errs := []error{validateOne(m)}
	err := protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		last := p.Index(-1)
		if last.Step.Kind() != protopath.AnyExpandStep {
			return nil
		}
		packed, ok := last.Value.Interface().(protoreflect.Message)
		if !ok {
			return nil
		}
		errs = append(errs, validateOne(packed.Interface()))
		return nil
	})
	return errors.Join(append(errs, err)...)
}

func validateOne(m proto.Message) error {
	v, ok := m.(interface{ ValidateAll() error })
	if !ok {
		return nil // a well-known type has no constraints
	}
	if err := v.ValidateAll(); err != nil {
		return fmt.Errorf("%s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return nil
}
