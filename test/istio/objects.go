package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"istio.io/istio/pkg/config/crd"
)

// objects are those of several files, apart by who takes them.
type objects struct {
	istio, kubernetes string
	custom            []*unstructured.Unstructured // those of istio
	services          int                          // that have been given an address
}

const between = "\n---\n"

func readObjects(files []string) (o objects, err error) {
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return o, err
		}
		reader := kubeyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 1<<20)
		for {
			var object unstructured.Unstructured
			err := reader.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return o, fmt.Errorf("%s: %w", path, err)
			}
			if err := o.add(&object); err != nil {
				return o, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return o, nil
}

func (o *objects) add(object *unstructured.Unstructured) error {
	if len(object.Object) == 0 {
		return nil // a document of comments
	}
	if object.GetKind() == "Service" && object.GroupVersionKind().Group == "" {
		if err := o.giveAddress(object); err != nil {
			return err
		}
	}
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return err
	}
	if strings.HasSuffix(object.GroupVersionKind().Group, ".istio.io") {
		o.istio += between + string(text)
		o.custom = append(o.custom, object)
		return nil
	}
	o.kubernetes += between + string(text)
	return nil
}

// giveAddress gives a Service without an address one, as the API server does.
func (o *objects) giveAddress(service *unstructured.Unstructured) error {
	if ip, _, err := unstructured.NestedString(service.Object, "spec", "clusterIP"); ip != "" || err != nil {
		return err
	}
	o.services++
	return unstructured.SetNestedField(service.Object, fmt.Sprintf("10.96.0.%d", o.services), "spec", "clusterIP")
}

// validate checks the objects of Istio as the API server does: unknown fields,
// types, and the rules in CEL.
func (o *objects) validate(crds string) error {
	validator, err := crd.NewValidatorFromFilesWithOptions([]string{crds}, crd.WithoutCRDValidation())
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range o.custom {
		errs = append(errs, validator.ValidateCustomResource(object.DeepCopy()))
	}
	return errors.Join(errs...)
}
