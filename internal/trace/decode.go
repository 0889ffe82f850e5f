package trace

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode reads a JSON value into v. Unknown members are ignored. An error says
// which member is wrong, and its value only if that is a number: anything else may be
// prompt text.
func decode(value []byte, v any) error {
	err := json.Unmarshal(value, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err == nil {
		return nil
	}
	wrong, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			return fmt.Errorf("not JSON from byte %d of %d on", syntax.ByteOffset, len(value))
		}
		return fmt.Errorf("not JSON, %d bytes", len(value))
	}
	what := "the line"
	if p := strings.TrimPrefix(string(wrong.JSONPointer), "/"); p != "" {
		what = cut(p)
	}
	got := kindName(wrong.JSONKind)
	if wrong.JSONKind == '0' && len(wrong.JSONValue) > 0 {
		got = "the number " + cut(string(wrong.JSONValue))
	}
	return fmt.Errorf("%s: got %s, want %s", what, got, wanted(wrong.GoType))
}

// kindName names a kind of JSON values.
func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	}
	return k.String()
}

// wanted names what a Go type is decoded from.
func wanted(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Uint64:
		return "an integer of 0 or more"
	case reflect.Slice:
		return "a list"
	case reflect.Pointer:
		return wanted(t.Elem())
	}
	return "an object"
}

// shown quotes an offending value, cut to what fits on a line.
func shown(value string) string { return fmt.Sprintf("%q", cut(value)) }

func cut(value string) string {
	const most = 64
	if len(value) <= most {
		return value
	}
	return value[:most] + "…"
}

// missing is the error of a line without a member that it needs.
func missing(member string) error { return fmt.Errorf("no %s", member) }
