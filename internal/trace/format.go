package trace

import (
	"fmt"
	"strings"
	"time"
)

// format is one way of writing traces.
type format struct {
	name string
	// anyBlock and anyUnit: it takes Options.BlockTokens, Options.TimeUnit.
	anyBlock, anyUnit bool
	// read hands on all records, in the order of the file.
	read func(in *input, o Options, b builder) error
	// sessions lays out sessions whose starts are not known; nil if times are real.
	sessions *layout
}

// builder is what a format's reader fills.
type builder interface {
	// add takes the next request.
	add(record) error
	// granularity says what Trace.BlockTokens will be.
	granularity(blockTokens int)
	// note adds a remark about the whole trace.
	note(text string, args ...any)
}

// formats returns all formats, sorted by name.
func formats() []format {
	return []format{
		{name: "azure", read: readAzure},
		{name: "copilot", read: readCopilot, sessions: &layout{gap: 20 * time.Second, fromFirst: true}},
		{name: "miniswe", read: readMiniSWE},
		{name: "mooncake", read: readMooncake, anyBlock: true, anyUnit: true},
		{name: "ragpulse", read: readRAGPulse},
		{name: "realhumaneval", read: readRealHumanEval, sessions: &layout{gap: 20 * time.Second}},
		{name: "text", read: readText, anyUnit: true},
		{name: "weka", read: readWeka, sessions: &layout{gap: time.Minute}},
	}
}

// Formats returns the names of the formats, sorted.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

func formatNamed(name string) (format, error) {
	for _, f := range formats() {
		if f.name == name {
			return f, nil
		}
	}
	return format{}, fmt.Errorf("trace format %s: want one of %s", shown(name), strings.Join(Formats(), ", "))
}
