package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/warmpath/warmpath/internal/advice"
)

// advised is what advise prints.
type advised struct {
	Trace       string   `json:"trace"`
	Format      string   `json:"format"`
	Requests    int      `json:"requests"`
	Span        float64  `json:"span_s"`
	SampleRatio float64  `json:"sample_ratio"`
	Speed       float64  `json:"speed"`
	Model       string   `json:"model"`
	Replicas    int      `json:"replicas"`
	Routers     int      `json:"routers"`
	CacheTokens int      `json:"cache_tokens"`
	Notes       []string `json:"notes,omitempty"`
	// Shared is the part of the input that one cache without a bound would have,
	// Distinct the tokens that it would hold, of all requests if these are a sample.
	Shared   float64 `json:"ideal_hit_rate"`
	Distinct int64   `json:"distinct_tokens"`

	Today   settingResult   `json:"today"`
	Advised settingResult   `json:"advised"`
	Keep    bool            `json:"keep_today"`
	Tried   []settingResult `json:"tried"`
	Fleets  []settingResult `json:"fleets"`
	// Needed is the smallest fleet that is nearly as good as the best that was
	// tried; not Enough if it is the largest.
	Needed int  `json:"replicas_needed"`
	Enough bool `json:"replicas_enough"`

	Warnings []warning `json:"warnings"`
	Config   string    `json:"config"`
}

type settingResult struct {
	Setting   string   `json:"setting"`
	Threshold int      `json:"concurrency_threshold,omitempty"`
	Replicas  int      `json:"replicas"`
	HitRate   float64  `json:"hit_rate"`
	TTFT      twoTimes `json:"ttft_ms"`
	Busiest   float64  `json:"busiest_over_mean"`
}

type twoTimes struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
}

func settingOf(r advice.Run) settingResult {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return settingResult{
		Setting: r.Setting, Threshold: r.Threshold, Replicas: r.Replicas, HitRate: r.Hit,
		TTFT: twoTimes{P50: ms(r.P50), P90: ms(r.P90)}, Busiest: r.Busiest,
	}
}

// words says what a setting is.
func (s settingResult) words() string {
	length, fixed := strings.CutPrefix(s.Setting, "prefix:")
	text := map[string]string{
		"round_robin":       "one replica after the other",
		"random":            "RANDOM",
		"least_outstanding": "LEAST_OUTSTANDING_REQUESTS",
		"kv_aware":          "KV_AWARE",
		"auto":              "PREFIX_AWARE, prefixLength auto",
	}[s.Setting]
	if fixed {
		text = "PREFIX_AWARE, prefixLength " + length
	}
	if s.Threshold > 0 {
		text += fmt.Sprintf(", threshold %d", s.Threshold)
	}
	return text
}

func (v *advised) print(w io.Writer) error {
	p := &page{w: w}
	p.line("%s: %d requests in %s, on %d simulated replicas (%s, %d tokens of cache each)%s, at %.4g times the speed of the trace.",
		v.Trace, v.Requests, spanWords(time.Duration(v.Span*float64(time.Second))), v.Replicas, v.Model, v.CacheTokens, routersWords(v.Routers), v.Speed)
	p.line("%.1f %% of the input is what an earlier prompt began with; about %s tokens hold all of it.", 100*v.Shared, millions(v.Distinct))
	for _, n := range v.Notes {
		p.line("note: %s", n)
	}
	p.line("")
	warnings := v.Warnings
	if len(warnings) > 0 && warnings[0].Kind == tooSmall { // the rest is not worth much then
		p.paragraph(warnings[0].Text)
		p.line("")
		warnings = warnings[1:]
	}
	p.line("What to set")
	p.line("")
	v.printAdvice(p)
	p.line("")
	v.printTables(p)
	if len(warnings) > 0 {
		p.line("")
		p.line("Mind")
	}
	for _, one := range warnings {
		p.line("")
		p.paragraph(one.Text)
	}
	p.line("")
	p.line("For warmpath.yaml:")
	p.line("")
	p.line("%s", strings.TrimSuffix(v.Config, "\n"))
	return p.err
}

func (v *advised) printAdvice(p *page) {
	switch {
	case v.Keep && v.Today.Setting != v.Advised.Setting:
		p.paragraph(fmt.Sprintf("Nothing that was tried is clearly better than %s. In warmpath %s comes next to it.", v.Today.words(), v.Advised.words()))
	case v.Keep:
		p.paragraph(fmt.Sprintf("Leave it as it is (%s): nothing that was tried is clearly better.", v.Today.words()))
	default:
		p.paragraph(fmt.Sprintf("%s instead of %s: of the input %.1f %% instead of %.1f %% is expected to be found in caches, the first token after "+
			"%s instead of %s (P50), %s instead of %s (P90), and the busiest replica has %.2f times the mean of the requests instead of %.2f.",
			v.Advised.words(), v.Today.words(), 100*v.Advised.HitRate, 100*v.Today.HitRate,
			milliseconds(v.Advised.TTFT.P50), milliseconds(v.Today.TTFT.P50), milliseconds(v.Advised.TTFT.P90), milliseconds(v.Today.TTFT.P90),
			v.Advised.Busiest, v.Today.Busiest))
	}
	p.line("")
	switch {
	case !v.Enough:
		p.paragraph(fmt.Sprintf("%d replicas or more: that is the largest fleet tried, and it is still clearly better than the smaller ones.", v.Needed))
	case v.Needed < v.Replicas:
		p.paragraph(fmt.Sprintf("%s would do for this traffic, instead of %d: more hit at most %.0f points more and have no P90 that is better by more than a fifth. What may fail, and busier hours than these, come on top.",
			replicas(v.Needed), v.Replicas, 100*advice.FleetPoints))
	case v.Needed == v.Replicas:
		p.paragraph(fmt.Sprintf("%s, as today: fewer hit clearly less or are slower, more gain little.", replicas(v.Needed)))
	default:
		p.paragraph(fmt.Sprintf("%d replicas instead of %d: with fewer the caches are too small, or requests wait.", v.Needed, v.Replicas))
	}
}

func (v *advised) printTables(p *page) {
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.DiscardEmptyColumns)
	row := func(name string, s settingResult) {
		fmt.Fprintf(t, "%s\t%.1f\t%.0f\t%.0f\t%.2f\t\n", name, 100*s.HitRate, s.TTFT.P50, s.TTFT.P90, s.Busiest)
	}
	fmt.Fprintln(t, "setting\thit %\tTTFT P50 ms\tP90\tbusiest/mean\t")
	row("today: "+v.Today.words(), v.Today)
	if v.Advised.Threshold > 0 {
		row(v.Advised.words(), v.Advised)
	}
	for _, s := range v.Tried {
		row(s.words(), s)
	}
	p.keep(t.Flush())
	p.line("")
	t = tabwriter.NewWriter(p.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "replicas, as advised\thit %\tTTFT P50 ms\tP90\tbusiest/mean\t")
	for _, s := range v.Fleets {
		row(fmt.Sprint(s.Replicas), s)
	}
	p.keep(t.Flush())
}

// page prints text for people, and keeps the first error.
type page struct {
	w   io.Writer
	err error
}

func (p *page) keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *page) line(format string, args ...any) {
	_, err := fmt.Fprintf(p.w, format+"\n", args...)
	p.keep(err)
}

// paragraph prints a text in lines of a width that is easy to read.
func (p *page) paragraph(text string) {
	const width = 96
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			p.line("  %s", line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	p.line("  %s", line)
}

func replicas(n int) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}

// routersWords says how many there are, if that is worth a word.
func routersWords(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" behind %d routers", n)
}

func milliseconds(ms float64) string {
	if ms >= 10_000 {
		return fmt.Sprintf("%.1f s", ms/1000)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

func millions(n int64) string {
	if n < 1_000_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1f million", float64(n)/1e6)
}
