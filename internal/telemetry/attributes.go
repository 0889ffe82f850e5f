package telemetry

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
)

// most is how many attributes a span has, at most.
const most = 32

// attributes describes a decision. All of them are the program's own words,
// numbers and hashes but for model, adapter and request id, which are cut.
//
// Each part is a function of its own: all in one take 2 KiB of stack, and a stream
// that needs more than 8 keeps 16 as long as it is open.
func attributes(r *extproc.Record) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, most)
	list = addChoice(list, &r.Decision)
	list = addLoads(list, &r.Decision)
	list = addPrompt(list, r)
	list = addPrefix(list, &r.Decision)
	list = addNames(list, r)
	if len(r.Problems) > 0 {
		list = append(list, attribute.StringSlice("warmpath.problems", problems(r)))
	}
	return list
}

func addChoice(list []attribute.KeyValue, d *route.Decision) []attribute.KeyValue {
	return append(list,
		attribute.String("warmpath.strategy", d.Strategy.String()),
		attribute.String("warmpath.reason", d.Reason.String()),
		attribute.String("warmpath.chosen", d.Chosen),
		attribute.StringSlice("warmpath.homes", d.Homes()),
		attribute.StringSlice("warmpath.choices", d.Choices()),
		attribute.Int("warmpath.rank", d.Rank))
}

func addLoads(list []attribute.KeyValue, d *route.Decision) []attribute.KeyValue {
	return append(list,
		attribute.Int64("warmpath.load.chosen", d.Load),
		attribute.Int64("warmpath.load.home", d.HomeLoad),
		attribute.Int64("warmpath.bound", d.Bound),
		attribute.Int("warmpath.candidates", d.Candidates),
		attribute.String("warmpath.membership", fmt.Sprintf("%016x", d.Membership)))
}

func addPrompt(list []attribute.KeyValue, r *extproc.Record) []attribute.KeyValue {
	list = append(list,
		attribute.String("warmpath.api", r.API.String()),
		attribute.Int("warmpath.config_generation", r.Generation),
		attribute.Bool("warmpath.tenant", r.HasTenant),
		attribute.Int64("warmpath.body_bytes", r.BodyBytes),
		attribute.Int("warmpath.prompt_chars", r.PromptChars))
	if !r.Decision.Keyed {
		return list
	}
	return append(list,
		attribute.String("warmpath.key", fmt.Sprintf("%016x", r.Decision.Key)),
		attribute.Int("warmpath.key_chars", r.KeyChars))
}

func addPrefix(list []attribute.KeyValue, d *route.Decision) []attribute.KeyValue {
	if d.HomeCount > 0 {
		list = append(list,
			attribute.Int("warmpath.depth_chars", d.Depth),
			attribute.Float64("warmpath.share", d.Share),
			attribute.Int("warmpath.home_count", d.HomeCount))
	}
	if d.WarmKnown() {
		list = append(list, attribute.Int("warmpath.warm_chars", d.Warm))
	}
	if d.AdapterSet > 0 {
		list = append(list, attribute.Int("warmpath.adapter_set", d.AdapterSet))
	}
	return list
}

func addNames(list []attribute.KeyValue, r *extproc.Record) []attribute.KeyValue {
	for _, optional := range []struct{ key, value string }{
		{"warmpath.policy_origin", r.PolicyOrigin},
		{"warmpath.pool", r.Pool},
		{"warmpath.arm", r.Arm.String()},
		{"warmpath.model", r.Model},
		{"warmpath.adapter", r.Adapter},
		{"warmpath.request_id", r.RequestID},
	} {
		if optional.value != "" {
			list = append(list, attribute.String(optional.key, optional.value))
		}
	}
	return list
}

func problems(r *extproc.Record) []string {
	names := make([]string, len(r.Problems))
	for i, p := range r.Problems {
		names[i] = p.String()
	}
	return names
}
