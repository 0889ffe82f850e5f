package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/warmpath/warmpath/internal/live/view"
)

// recent is how many seconds a rate is taken over.
const recent = 5

// topLine is a view in one line.
func topLine(s view.Snapshot) string {
	rate, overflow, expected, p99 := lately(s)
	var outstanding int64
	members := 0
	for _, p := range s.Pools {
		for _, m := range p.Members {
			outstanding += m.Outstanding
		}
		members += len(p.Members)
	}
	return fmt.Sprintf("%s requests=%.1f/s running=%d endpoints=%d overflow=%s expected=%s decide_p99=%.0fus warnings=%d\n",
		s.At.Format("15:04:05"), rate, outstanding, members, share(overflow), expected, p99, len(s.Warnings))
}

// lately sums the last seconds up.
func lately(s view.Snapshot) (rate, overflow float64, expected string, p99 float64) {
	seconds := s.Seconds[max(len(s.Seconds)-recent, 0):]
	var requests, over, cached, chars float64
	for _, x := range seconds {
		requests += float64(x.Requests)
		over += float64(x.Overflowed(s.Reasons))
		cached, chars = cached+float64(x.Cached), chars+float64(x.Characters)
		p99 = max(p99, x.P99)
	}
	expected = "-"
	if chars > 0 {
		expected = share(cached / chars)
	}
	return requests / max(float64(len(seconds)), 1), over / max(requests, 1), expected, p99
}

// topView is the whole view in at most so many lines of at most so many characters; 0
// characters is any number.
func topView(s view.Snapshot, width, lines int) []byte {
	rate, overflow, expected, p99 := lately(s)
	var b bytes.Buffer
	fmt.Fprintf(&b, "warmpath %s  %s  configuration %d  %.1f requests/s  overflow %s  expected hits %s  decisions P99 %.0f us\n",
		s.Version, s.At.Format("15:04:05"), s.Generation, rate, share(overflow), expected, p99)
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "! %s %s\n", w.Text, w.Advice)
	}
	decisions := min(len(s.Decisions), max(lines/4, 3))
	room := lines - bytes.Count(b.Bytes(), []byte("\n")) - decisions - 2
	for _, p := range s.Pools {
		hot := min(len(p.Hot), 3)
		members := min(len(p.Members), max(room/len(s.Pools)-hot-len(p.Trials)-5, 3))
		topPool(&b, p, members, hot)
	}
	if decisions > 0 {
		fmt.Fprintf(&b, "\nlast decisions\n")
	}
	for _, d := range slices.Backward(s.Decisions[len(s.Decisions)-decisions:]) {
		fmt.Fprintf(&b, "%s  %-17s %s\n", d.At.Format("15:04:05"), d.Reason, d.Sentence)
	}
	return fit(b.Bytes(), width, lines)
}

// topPool writes a pool with so many of its members, the busiest first, and prefixes.
func topPool(b *bytes.Buffer, p view.Pool, members, hot int) {
	fmt.Fprintf(b, "\npool %s  %s  prefixLength %s  concurrencyThreshold %s  %d requests in a minute  overflow %s  expected hits %s  actual %s\n",
		p.Name, p.Strategy, p.PrefixLength, p.ConcurrencyThreshold, p.Requests, share(p.Overflow), known(p.Expected), known(p.Actual))
	for _, x := range p.Trials {
		topTrial(b, x)
	}
	list := slices.Clone(p.Members)
	slices.SortStableFunc(list, func(x, y view.Endpoint) int { return cmp.Compare(y.Requests, x.Requests) })
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "endpoint\tstate\trunning\tbound\tshare\toverflow\texpected\tactual\tfirst token\t")
	for _, m := range list[:members] {
		bound := "-"
		if m.Bound > 0 {
			bound = fmt.Sprint(m.Bound)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", m.Address, m.State, m.Outstanding+m.Others, bound,
			share(m.Share), share(m.Overflow), known(m.Expected), known(m.Actual), firstTokens(m))
	}
	_ = t.Flush() // into memory
	if more := len(list) - members; more > 0 {
		fmt.Fprintf(b, "and %d more with fewer requests\n", more)
	}
	for _, h := range p.Hot[:hot] {
		fmt.Fprintf(b, "hot %s  %d characters  %s of requests  %d homes  served by %s\n", h.Key, h.Depth, share(h.Share), h.Homes, strings.Join(h.Holders, " "))
	}
}

// topTrial writes a policy on trial against the pool's own.
func topTrial(b *bytes.Buffer, x view.Trial) {
	fmt.Fprintf(b, "%s of %s  %s  prefixLength %s  concurrencyThreshold %s  expected hits %s (main %s)  overflow %s (%s)  requests %d (%d)",
		x.Kind, share(x.Share), x.Strategy, x.PrefixLength, x.ConcurrencyThreshold, known(x.Tried.Expected), known(x.Main.Expected),
		share(x.Tried.Overflow), share(x.Main.Overflow), x.Tried.Requests, x.Main.Requests)
	if x.Moved != nil {
		fmt.Fprintf(b, "  would move %s", share(*x.Moved))
	}
	if tried, main := x.Tried.BusiestOverMean, x.Main.BusiestOverMean; tried != nil && main != nil {
		fmt.Fprintf(b, "  busiest/mean %.2f (%.2f)", *tried, *main)
	}
	b.WriteByte('\n')
}

func share(f float64) string { return fmt.Sprintf("%.1f%%", 100*f) }

func known(f *float64) string {
	if f == nil {
		return "-"
	}
	return share(*f)
}

// firstTokens are the mean times to the first token, where the cache was expected to be
// warm and where it was not; where nothing is expected that time alone, or after them.
func firstTokens(m view.Endpoint) string {
	text := func(seconds float64) string {
		if seconds == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2g s", seconds)
	}
	if m.FirstTokenWarm == 0 && m.FirstTokenCold == 0 {
		return text(m.FirstTokenUnknown)
	}
	known := text(m.FirstTokenWarm) + " / " + text(m.FirstTokenCold)
	if m.FirstTokenUnknown == 0 {
		return known
	}
	return known + " / " + text(m.FirstTokenUnknown)
}

// fit cuts a text to a screen.
func fit(text []byte, width, lines int) []byte {
	var b bytes.Buffer
	n := 0
	for line := range bytes.Lines(text) {
		if n++; n > lines {
			break
		}
		if width > 0 && utf8.RuneCount(line) > width {
			line = []byte(string([]rune(string(line))[:width]) + "\n")
		}
		b.Write(line)
	}
	return b.Bytes()
}
