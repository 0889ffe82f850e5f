package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The real traces: with one setting for all, auto hits within a point of the best
// fixed length that keeps the busiest replica below 1.6 times the mean. (Virtual
// time: it is the same on every machine.)
func TestAutoOnRealTraces(t *testing.T) {
	fixed := []string{"prefix:4096", "hash:1024", "hash:4096", "hash:16384"}
	for _, tc := range []struct {
		format, path, model, cache, speed string
	}{
		{"mooncake", "mooncake_conversation.jsonl.gz", "llama-70b", "5100000", "4"},
		{"ragpulse", "ragpulse", "llama-70b", "5100000", "1800"},
		{"weka", "weka_claude_code_63sessions_2h.jsonl.gz", "llama-70b", "2600000", "15"},
		{"miniswe", "lmcache_miniswe.jsonl.gz", "llama-8b", "160000", "20"},
		{"realhumaneval", "realhumaneval_chat.csv.gz", "llama-8b", "160000", "40"},
		{"copilot", "copilot_completion.jsonl.gz", "llama-8b", "160000", "100"},
	} {
		t.Run(tc.format, func(t *testing.T) {
			t.Parallel()
			got := simulateJSON(t, "-trace", "../../bench/data/"+tc.path, "-format", tc.format, "-model", tc.model,
				"-cache-tokens", tc.cache, "-speed", tc.speed, "-policy", "auto,"+strings.Join(fixed, ","), "-routers", "1")
			auto := got.Results[0]
			best := 0.0
			for _, r := range got.Results[1:] {
				if r.BusiestOver.Requests <= 1.6 {
					best = max(best, r.HitRate)
				}
			}
			t.Logf("auto %.1f %%, busiest %.2f; the best fixed length %.1f %%", 100*auto.HitRate, auto.BusiestOver.Requests, 100*best)
			if auto.HitRate < best-0.01 || auto.BusiestOver.Requests > 1.65 {
				t.Errorf("auto hits %.1f %% (busiest %.2f), the best fixed length %.1f %%", 100*auto.HitRate, auto.BusiestOver.Requests, 100*best)
			}
		})
	}
}

func simulateJSON(t *testing.T, args ...string) *simulated {
	t.Helper()
	var out, progress bytes.Buffer
	if err := simulate(append(args, "-json"), &out, &progress); err != nil {
		t.Fatal(err)
	}
	got := new(simulated)
	if err := json.Unmarshal(out.Bytes(), got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSimulateWords(t *testing.T) {
	var out, progress bytes.Buffer
	args := []string{"-trace", "../../bench/data/copilot_completion.jsonl.gz", "-format", "copilot", "-policy", "auto,random", "-routers", "1,2", "-replicas", "4"}
	if err := simulate(args, &out, &progress); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	rows := lines[len(lines)-4:]
	for i, want := range []string{"auto 1", "random 1", "auto 2", "random 2"} {
		if got := strings.Fields(rows[i]); strings.Join(got[:2], " ") != want || len(got) != 9 {
			t.Errorf("row %d: %s, want %s", i, rows[i], want)
		}
	}
}

func TestSimulateRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                                   "want --trace FILE",
		"-trace no-such-file":                "no-such-file",
		"-trace x -replicas 0":               "--replicas 0: want 1..1000",
		"-trace x -routers 0":                `--routers "0"`,
		"-trace x -routers 1,x":              `--routers "1,x"`,
		"-trace x -speed 0":                  "--speed 0",
		"-trace x -speed NaN":                "--speed NaN",
		"-trace x -cache-tokens 10":          "--cache-tokens 10",
		"-trace x -policy best":              `policy "best"`,
		"-trace x -policy prefix:1":          `policy "prefix:1"`,
		"-trace x -model gpt":                `--model "gpt"`,
		"-trace x -concurrency-threshold -1": "--concurrency-threshold -1",
		"-trace x y":                         `unexpected argument "y"`,
		"-trace simulate.go -format none":    "none",
	} {
		err := simulate(strings.Fields(args), new(bytes.Buffer), new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", args, err, want)
		}
	}
}
