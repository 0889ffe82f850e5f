package modelserver

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Engine is what an engine tells of its caches in its metrics. A number that it does not
// tell is NaN.
type Engine struct {
	// Queries and Hits are how many tokens of prompts were looked up in the prefix cache
	// since the engine began, and how many were found.
	Queries, Hits float64
	// HitRate is how much of the prompts is found, 0 to 1, as the engine computes it.
	HitRate float64
	// Usage is how full the KV cache is with what is in use, 0 to 1.
	Usage float64
}

// families are the metrics that are read: of each number the names under which engines
// have had it, of which the first that is there counts. The engine's processes (data
// parallel ranks) have a series each: counters are added up, shares averaged.
var families = []struct {
	of    func(*Engine) *float64
	mean  bool
	names []string
}{
	{func(e *Engine) *float64 { return &e.Queries }, false, []string{
		"vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries",
		"vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries",
	}},
	{func(e *Engine) *float64 { return &e.Hits }, false, []string{
		"vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits",
		"vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits", "llamacpp:prompt_tokens_cached_total",
	}},
	{func(e *Engine) *float64 { return &e.HitRate }, true, []string{"sglang:cache_hit_rate"}},
	{func(e *Engine) *float64 { return &e.Usage }, true, []string{
		"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage",
	}},
}

// computedTokens are those of prompts that were not found, which llama.cpp counts
// instead of the ones that it looked up.
const computedTokens = "llamacpp:prompt_tokens_total"

const (
	// MetricsPath is where engines have their metrics.
	MetricsPath = "/metrics"
	// maxMetrics bounds them in bytes, maxMetricLine a line of them.
	maxMetrics    = 4 << 20
	maxMetricLine = 64 << 10
)

// sum is what was added up of the series of one name.
type sum struct {
	total float64
	n     int
}

// ParseMetrics reads an engine's metrics in the Prometheus text format. Only the lines of the families
// are looked at.
func ParseMetrics(r io.Reader) (Engine, error) {
	limited := &io.LimitedReader{R: r, N: maxMetrics + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 4096), maxMetricLine)
	sums := make(map[string]sum)
	for lines.Scan() {
		name, value, ok := sample(lines.Bytes())
		if !ok {
			continue
		}
		s := sums[name]
		sums[name] = sum{s.total + value, s.n + 1}
	}
	switch err := lines.Err(); {
	case err != nil:
		return Engine{}, fmt.Errorf("GET %s: %w (lines of at most %d bytes)", MetricsPath, err, maxMetricLine)
	case limited.N == 0:
		return Engine{}, fmt.Errorf("GET %s: an answer of more than %d bytes", MetricsPath, maxMetrics)
	}
	e := Engine{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	for _, f := range families {
		for _, name := range f.names {
			if s := sums[name]; s.n > 0 {
				if *f.of(&e) = s.total; f.mean {
					*f.of(&e) = s.total / float64(s.n)
				}
				break
			}
		}
	}
	if s := sums[computedTokens]; math.IsNaN(e.Queries) && s.n > 0 {
		e.Queries = e.Hits + s.total
	}
	return e, nil
}

// sample reads a line of one of the families, name{labels} value [time]. Values below 0
// and those that are no number are none.
func sample(line []byte) (name string, value float64, ok bool) {
	if name, ok = familyOf(line); !ok {
		return "", 0, false
	}
	rest := line[len(name):]
	if end := bytes.LastIndexByte(rest, '}'); end >= 0 {
		rest = rest[end+1:]
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return "", 0, false
	}
	value, err := strconv.ParseFloat(string(fields[0]), 64)
	return name, value, err == nil && value >= 0 && !math.IsInf(value, 0)
}

func familyOf(line []byte) (string, bool) {
	for _, f := range families {
		for _, name := range f.names {
			if isOf(line, name) {
				return name, true
			}
		}
	}
	return computedTokens, isOf(line, computedTokens)
}

// isOf reports whether a line is a sample of that name.
func isOf(line []byte, name string) bool {
	after, ok := bytes.CutPrefix(line, []byte(name))
	return ok && len(after) > 0 && (after[0] == '{' || after[0] == ' ')
}
