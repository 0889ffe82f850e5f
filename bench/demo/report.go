package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/internal/otlpsink"
)

func (d *demonstration) printComparison(random, fixed, auto measured) {
	w := d.out
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }
	row("", "RANDOM", fmt.Sprint("prefixLength ", fixedLength), "prefixLength auto", "RANDOM → auto")
	all := []measured{random, fixed, auto}
	each := func(name string, cell func(measured) string, change string) {
		cells := []string{name}
		for _, s := range all {
			cells = append(cells, cell(s))
		}
		row(append(cells, change)...)
	}
	each("KV cache hit rate", func(s measured) string { return percent(s.HitRate) },
		fmt.Sprintf("%+.1f points", 100*(auto.HitRate-random.HitRate)))
	each("  as warmpath reads it", func(s measured) string { return s.rate(cachedTokens, promptTokens) }, "")
	each("  as warmpath expects it", func(s measured) string { return s.rate(cachedChars, promptChars) }, "")
	each("TTFT P50", func(s measured) string { return milliseconds(s.TTFT.P50) }, change(random.TTFT.P50, auto.TTFT.P50))
	each("TTFT P90", func(s measured) string { return milliseconds(s.TTFT.P90) }, change(random.TTFT.P90, auto.TTFT.P90))
	each("failed requests", func(s measured) string { return fmt.Sprint(s.Failed) }, "")
	for _, name := range d.stack.Replicas.Addresses() {
		each("share of "+name, func(s measured) string { return percent(share(s.Summary, name)) }, "")
	}
	_ = t.Flush() // writes to w, whose errors nobody could be told of
	shared := d.options.workload
	fmt.Fprintf(w, "\nTTFT is the time to the first content chunk, at the simulated GPUs' %d-fold speed. No routing can hit more than %s here.\n",
		timeScale, percent(ceiling(shared)))
	fmt.Fprintf(w, "All prompts begin with the same %d characters: to a fixed length of %d they are all alike. auto looks behind what is hot.\n",
		shared.CommonChars, fixedLength)
}

// ceiling is the hit rate of one cache that all replicas share: of every
// document, all uses but the first find it, and what all have in common is there
// from the second request on.
func ceiling(shared load.Shared) float64 {
	common, document, question := float64(shared.CommonChars), float64(shared.PrefixChars), float64(shared.SuffixChars)
	uses, prefixes := float64(shared.Uses), float64(shared.Prefixes)
	hit := (uses-1)/uses*document + (1-1/(uses*prefixes))*common
	return hit / (common + document + question)
}

func share(s load.Summary, replica string) float64 {
	for _, r := range s.Shares {
		if r.Replica == replica {
			return r.Fraction
		}
	}
	return 0
}

func change[T ~int64](from, to T) string {
	return fmt.Sprintf("%+.0f %%", 100*(float64(to)/float64(from)-1))
}

// shown are the kinds of decisions that are told in words; not all of the last ones come
// in every run.
func shown() []kind {
	return []kind{{"random", false, true}, {"home", false, true}, {"overflow", false, true}, {"home", true, true}, {"warm_elsewhere", true, false}, {"relief", true, false}}
}

// kind is a kind of decision: its reason, with the automatic length or not.
type kind struct {
	reason     string
	auto, must bool
}

func (k kind) of(spans []otlpsink.Span) (found []otlpsink.Span) {
	for _, s := range byReason(spans, k.reason) {
		if isAuto(s) == k.auto {
			found = append(found, s)
		}
	}
	return found
}

// printDecisions tells a decision of each kind in words, from its span.
func (d *demonstration) printDecisions() error {
	// The spans of a batch leave warmpath within five seconds.
	if err := d.stack.Await(d.ctx, "the spans", func() error {
		for _, k := range shown() {
			if k.must && len(k.of(d.sink.Spans())) == 0 {
				return fmt.Errorf("no decision by %q was traced", k.reason)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	fmt.Fprintln(d.out, "\nSome decisions, from their spans:")
	all := d.sink.Spans()
	for _, k := range shown() {
		if spans := k.of(all); len(spans) > 0 {
			fmt.Fprintf(d.out, "  %s\n", words(spans[len(spans)/2]))
		}
	}
	return nil
}

// isAuto reports whether a decision was made with the automatic prefix length.
func isAuto(s otlpsink.Span) bool { return s.Attribute("warmpath.home_count").GetIntValue() > 0 }

func byReason(spans []otlpsink.Span, reason string) []otlpsink.Span {
	var found []otlpsink.Span
	for _, s := range spans {
		if s.Attribute("warmpath.reason").GetStringValue() == reason {
			found = append(found, s)
		}
	}
	return found
}

// words says a decision in a sentence.
func words(s otlpsink.Span) string {
	text := func(key string) string { return s.Attribute("warmpath." + key).GetStringValue() }
	number := func(key string) int64 { return s.Attribute("warmpath." + key).GetIntValue() }
	took := (s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano()) / 1000
	tail := fmt.Sprintf(" (%d bytes of body, decided %d µs after its headers)", number("body_bytes"), took)
	if isAuto(s) {
		why := map[string]string{
			"home": "a home", "warm_elsewhere": "no home, but warm", "relief": "the home has too much to prefill", "overflow": "the home is full",
		}[text("reason")]
		return fmt.Sprintf("key %s of %d characters (%.1f %% of the requests begin so, %d home) → %s: %s, %d characters are warm there%s",
			text("key"), number("depth_chars"), 100*s.Attribute("warmpath.share").GetDoubleValue(), number("home_count"), text("chosen"), why, number("warm_chars"), tail)
	}
	switch reason := text("reason"); reason {
	case "home":
		return fmt.Sprintf("key %s → %s: its first home, with %d of at most %d requests%s",
			text("key"), text("chosen"), number("load.chosen"), number("bound"), tail)
	case "overflow":
		return fmt.Sprintf("key %s → %s: home %s already had %d of at most %d requests, so its home number %d took it%s",
			text("key"), text("chosen"), s.Strings("warmpath.homes")[0], number("load.home"), number("bound"), number("rank")+1, tail)
	default:
		return fmt.Sprintf("%s → %s: chosen at random, the prompt was not looked at%s", text("strategy"), text("chosen"), tail)
	}
}
