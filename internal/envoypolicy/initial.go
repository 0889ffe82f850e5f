package envoypolicy

import (
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxDepth is how deeply a text may be nested; a policy needs four levels of
// JSON, and eight of the text form.
const maxDepth = 64

// readInitialMetadata reads the name of a policy or a policy as JSON.
func (r *Resolver) readInitialMetadata(text string) outcome {
	text = strings.TrimSpace(text)
	if text == "" {
		return outcome{}
	}
	if !strings.HasPrefix(text, "{") {
		if p, ok := r.named[text]; ok {
			return outcome{policy: p, given: true}
		}
		return failed(&Fault{Origin: FromInitialMetadata, Problem: UnknownPolicy, Value: quote(text), Want: wantPolicy + ", or JSON"})
	}
	var s structpb.Struct
	if err := (protojson.UnmarshalOptions{RecursionLimit: maxDepth}).Unmarshal([]byte(text), &s); err != nil {
		return failed(&Fault{Origin: FromInitialMetadata, Problem: Malformed, Value: quote(text), Want: "want a JSON object without repeated names"})
	}
	return r.ofStruct(FromInitialMetadata, &s)
}
