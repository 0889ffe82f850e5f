package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/advice"
	"github.com/warmpath/warmpath/internal/trace"
)

// warning is something that the trace, the load or the prompts have.
type warning struct {
	// Kind is a word for programs: too_small, sampled, nothing_shared, one_cache,
	// quiet, volatile_prefix, spelling, spelling_unknown.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

const tooSmall = "too_small"

// warnings says what the advice depends on, and what is wrong with the prompts.
func (a *adviser) warnings(stats trace.Stats, prompts []advice.Prompt, texts *advice.Texts) []warning {
	list := []warning{}
	add := func(kind, format string, args ...any) {
		list = append(list, warning{kind, fmt.Sprintf(format, args...)})
	}
	if text := smallTrace(stats, a.options.replicas*fewRequests); text != "" {
		add(tooSmall, "%s", text)
	}
	if ratio := a.replay.trace.SampleRatio; ratio < 1 {
		add("sampled", "The trace has %.3g %% of the requests there were. They were replayed %.3g times as fast, so that the replicas have all of the load; "+
			"the pauses within a conversation are shorter that way, so hit rates are too good and fleets seem to need less cache than they do. "+
			"Recording everything for a shorter time shows it better.", 100*ratio, 1/ratio)
	}
	a.warnOfLoad(stats, add)
	a.warnOfPrompts(prompts, texts, add)
	return list
}

// smallTrace says what a trace lacks to conclude from, "" if nothing. requests is
// how many it should have.
func smallTrace(stats trace.Stats, requests int) string {
	var missing []string
	if stats.Requests < requests {
		missing = append(missing, fmt.Sprintf("%d requests or more", requests))
	}
	if stats.Span < shortTrace {
		missing = append(missing, spanWords(shortTrace)+" or longer")
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("The trace is too small to conclude from: %d requests in %s. Record %s, at the time of day that matters.",
		stats.Requests, spanWords(stats.Span), strings.Join(missing, ", and "))
}

func (a *adviser) warnOfLoad(stats trace.Stats, add func(kind, format string, args ...any)) {
	random := a.tried[len(a.tried)-1]
	switch {
	case a.replay.trace.BlockTokens == 0:
		add("nothing_shared", "The trace has only lengths, not what prompts share: nothing can be said of caches.")
	case stats.Ideal() < advice.LittleShared:
		add("nothing_shared", "Prompts share hardly anything with those before them (%.1f %% of the input): no routing can gain from caches.", 100*stats.Ideal())
	case advice.Keep(random, a.chosen):
		add("one_cache", "Where requests go does not matter: chosen at random they hit as much and are as fast. Each replica's cache holds what comes again.")
	}
	if advice.Quiet(a.chosen, a.slow) {
		add("quiet", "Nothing waits at this rate: with a tenth of the load the times are the same. --speed %.4g shows a busier day.", min(10*a.options.speed, mostSpeed))
	}
}

func (a *adviser) warnOfPrompts(prompts []advice.Prompt, texts *advice.Texts, add func(kind, format string, args ...any)) {
	if v, ok := texts.Volatile(); ok {
		add("volatile_prefix", "Near the beginning of %.0f %% of the prompts, at character %d, is a short piece that is different each time, such as a time or an id, "+
			"while what follows it is the same. No cache can use what follows: move the piece to the end of the prompt.", 100*v.Share, v.Character)
	} else if l := advice.FindLoners(prompts); l.Suspicious() && !texts.Given() {
		text := "%.0f %% of the long prompts begin like no other, from their first %d tokens on. If they have a common beginning (a system prompt, a document), " +
			"something in front of it is different each time, such as a time or an id, and no cache can use what follows: move it to the end of the prompt."
		if l.Returning {
			text += " The same clients send them again and again, which makes that likely."
		} else {
			text += " If each is about something else, this is as it should be."
		}
		add("volatile_prefix", text, 100*float64(l.Alone)/float64(l.Long), max(a.replay.trace.BlockTokens, trace.ChunkTokens))
	}
	switch share := texts.Spelled(); {
	case share > 0:
		add("spelling", "%.0f %% of the prompts begin with the same words as others, but in another spelling: white space, the order of keys, or escapes. "+
			"Engines take these for different prompts: write what is the same in one way (sorted keys, one serialiser).", 100*share)
	case !texts.Given() && a.replay.trace.BlockTokens > 0:
		add("spelling_unknown", "The trace has hashes instead of text, so it cannot be seen whether the same content is written in different ways (white space, order of keys).")
	}
}

// spanWords is a time in words that are as exact as anybody wants.
func spanWords(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return fmt.Sprintf("%.0f hours", d.Hours())
}
