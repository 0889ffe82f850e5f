package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/internal/otlpsink"
)

func (d *demonstration) printComparison(random, aware load.Summary) {
	w := d.out
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }
	row("", "RANDOM", "PREFIX_AWARE", "change")
	row("KV cache hit rate", percent(random.HitRate), percent(aware.HitRate),
		fmt.Sprintf("%+.1f points", 100*(aware.HitRate-random.HitRate)))
	row("TTFT P50", milliseconds(random.TTFT.P50), milliseconds(aware.TTFT.P50), change(random.TTFT.P50, aware.TTFT.P50))
	row("TTFT P90", milliseconds(random.TTFT.P90), milliseconds(aware.TTFT.P90), change(random.TTFT.P90, aware.TTFT.P90))
	row("failed requests", fmt.Sprint(random.Failed), fmt.Sprint(aware.Failed), "")
	for _, name := range d.stack.Replicas.Addresses() {
		row("share of "+name, percent(share(random, name)), percent(share(aware, name)), "")
	}
	_ = t.Flush() // writes to w, whose errors nobody could be told of
	fmt.Fprintf(w, "\nTTFT is the time to the first content chunk, at the simulated GPUs' %d-fold speed. No routing can hit more than %s here.\n",
		timeScale, percent(ceiling(d.options.workload)))
}

// ceiling is the hit rate of one cache that all replicas share: of every
// document, all uses but the first find it.
func ceiling(shared load.Shared) float64 {
	document, question := float64(shared.PrefixChars), float64(shared.SuffixChars)
	uses := float64(shared.Uses)
	return (uses - 1) * document / (uses * (document + question))
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

// printDecisions tells a decision of each kind in words, from its span.
func (d *demonstration) printDecisions() error {
	fmt.Fprintln(d.out, "\nSome decisions, from their spans:")
	for _, reason := range []string{"random", "home", "overflow"} {
		spans := byReason(d.sink.Spans(), reason)
		if len(spans) == 0 {
			return fmt.Errorf("no decision by %q was traced", reason)
		}
		fmt.Fprintf(d.out, "  %s\n", words(spans[len(spans)/2]))
	}
	return nil
}

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
