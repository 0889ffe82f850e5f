package envoypolicy

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/warmpath/warmpath/internal/route"
)

// A policy's fields, in the spelling that messages use.
const (
	fieldStrategy     = "strategy"
	fieldPrefixLength = "prefix_length"
	fieldThreshold    = "concurrency_threshold"
	fieldPolicy       = "policy"
	fieldPool         = "pool"
	// The blocks of SageMaker's RoutingConfig, in which the fields may stand.
	blockRouting     = "routing_config"
	blockPrefixAware = "prefix_aware_routing_config"
)

// canonical returns a field's name from any of its spellings, "" if it is none.
func canonical(name string) string {
	switch name {
	case "strategy", "routing_strategy", "routingStrategy", "RoutingStrategy":
		return fieldStrategy
	case "prefix_length", "prefixLength", "PrefixLength":
		return fieldPrefixLength
	case "concurrency_threshold", "concurrencyThreshold", "ConcurrencyThreshold":
		return fieldThreshold
	case "policy":
		return fieldPolicy
	case "pool":
		return fieldPool
	case "routing_config", "routingConfig", "RoutingConfig":
		return blockRouting
	case "prefix_aware_routing_config", "prefixAwareRoutingConfig", "PrefixAwareRoutingConfig":
		return blockPrefixAware
	}
	return ""
}

// mayHold tells which fields may stand in which block; "" is the outermost.
func mayHold(block, field string) bool {
	switch block {
	case blockPrefixAware:
		return field == fieldPrefixLength || field == fieldThreshold
	case blockRouting:
		return field == fieldStrategy || field == blockPrefixAware
	default:
		return true
	}
}

// fields are those that a source gives.
type fields struct {
	strategy     route.Strategy
	prefixLength int
	threshold    int
	policy, pool string

	hasStrategy, hasPrefixLength, hasThreshold, hasPolicy, hasPool bool
	fault                                                          *Fault
}

// ofStruct returns the policy that a source's fields make. One fault spoils the
// source: half of a policy is not what anybody asked for.
func (r *Resolver) ofStruct(origin Origin, s *structpb.Struct) outcome {
	var f fields
	f.read("", s)
	p := r.fallback
	if f.hasPool && f.fault == nil {
		of, ok := r.pools[f.pool]
		if !ok {
			f.report(UnknownPool, fieldPool, quote(f.pool), wantPool)
		}
		p = of
	}
	if f.hasPolicy && f.fault == nil {
		named, ok := r.named[f.policy]
		if !ok {
			f.report(UnknownPolicy, fieldPolicy, quote(f.policy), wantPolicy)
		}
		p = named
	}
	if f.fault != nil {
		f.fault.Origin = origin
		return failed(f.fault)
	}
	if f.hasStrategy {
		p.Strategy = f.strategy
	}
	if f.hasPrefixLength {
		p.PrefixLength = f.prefixLength
	}
	if f.hasThreshold {
		p.ConcurrencyThreshold = f.threshold
	}
	return outcome{policy: p, pool: f.pool, given: f.hasPolicy || f.hasStrategy || f.hasPrefixLength || f.hasThreshold || f.hasPool}
}

func (f *fields) read(block string, s *structpb.Struct) {
	for name, v := range s.GetFields() {
		field := canonical(name)
		if field == "" || !mayHold(block, field) {
			f.report(UnknownField, "", quote(name), wantFields)
			continue
		}
		f.readField(field, v)
	}
}

func (f *fields) readField(field string, v *structpb.Value) {
	switch field {
	case fieldStrategy:
		f.once(field, &f.hasStrategy)
		f.readStrategy(v)
	case fieldPrefixLength:
		f.once(field, &f.hasPrefixLength)
		if v.GetStringValue() == "auto" {
			f.prefixLength = route.AutoPrefixLength
			return
		}
		f.prefixLength = f.whole(field, v, route.MinPrefixLength, route.MaxPrefixLength, wantPrefixLength)
	case fieldThreshold:
		f.once(field, &f.hasThreshold)
		if v.GetStringValue() == "auto" {
			f.threshold = route.AutoConcurrencyThreshold
			return
		}
		f.threshold = f.whole(field, v, route.MinConcurrencyThreshold, route.MaxConcurrencyThreshold, wantThreshold)
	case fieldPolicy:
		f.once(field, &f.hasPolicy)
		f.policy = f.text(field, v, wantPolicy)
	case fieldPool:
		f.once(field, &f.hasPool)
		f.pool = f.text(field, v, wantPool)
	default:
		inner, ok := v.GetKind().(*structpb.Value_StructValue)
		if !ok {
			f.report(WrongType, field, show(v), "want an object")
			return
		}
		f.read(field, inner.StructValue)
	}
}

func (f *fields) readStrategy(v *structpb.Value) {
	name, ok := v.GetKind().(*structpb.Value_StringValue)
	if !ok {
		f.report(WrongType, fieldStrategy, show(v), wantStrategy)
		return
	}
	strategy, err := route.ParseStrategy(name.StringValue)
	if err != nil {
		f.report(OutOfRange, fieldStrategy, quote(name.StringValue), wantStrategy)
		return
	}
	f.strategy = strategy
}

// text reads a name.
func (f *fields) text(field string, v *structpb.Value, want string) string {
	name, ok := v.GetKind().(*structpb.Value_StringValue)
	if !ok {
		f.report(WrongType, field, show(v), want)
		return ""
	}
	return name.StringValue
}

// whole reads a whole number within bounds.
func (f *fields) whole(field string, v *structpb.Value, low, high int, want string) int {
	n, ok := v.GetKind().(*structpb.Value_NumberValue)
	switch {
	case !ok:
		f.report(WrongType, field, show(v), want)
	case n.NumberValue != math.Trunc(n.NumberValue), n.NumberValue < float64(low), n.NumberValue > float64(high):
		f.report(OutOfRange, field, show(v), want)
	default: // also rules out NaN, which differs from itself
		return int(n.NumberValue)
	}
	return 0
}

func (f *fields) once(field string, has *bool) {
	if *has {
		f.report(RepeatedField, field, "given twice", "want one spelling")
	}
	*has = true
}

// report keeps one fault of several, always the same one although the fields
// come in a random order.
func (f *fields) report(p Problem, field, value, want string) {
	if f.fault != nil && (f.fault.Field+f.fault.Value) <= field+value {
		return
	}
	f.fault = &Fault{Problem: p, Field: field, Value: value, Want: want}
}

// show renders a value briefly.
func show(v *structpb.Value) string {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return quote(k.StringValue)
	case *structpb.Value_NumberValue:
		return strconv.FormatFloat(k.NumberValue, 'g', -1, 64)
	case *structpb.Value_BoolValue:
		return strconv.FormatBool(k.BoolValue)
	case *structpb.Value_StructValue:
		return "an object"
	case *structpb.Value_ListValue:
		return "a list"
	default:
		return "null"
	}
}
