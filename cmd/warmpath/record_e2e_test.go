package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
	"github.com/warmpath/warmpath/internal/trace"
)

// recordInto is a block of the configuration, with a salt of its own.
func recordInto(t *testing.T, folder, salt string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "salt")
	if err := os.WriteFile(path, []byte(strings.Repeat(salt, 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("recording: {folder: %q, saltFile: %q}", folder, path)
}

// What passes through Envoy under any strategy is recorded, without a word of it,
// and can be read and simulated as it is.
func TestRecordedThroughEnvoy(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-7f3a"
	folder := filepath.Join(t.TempDir(), "recordings")
	extra := recordInto(t, folder, "salt")
	configs := []stack.Config{{Strategy: "RANDOM", Extra: extra}, {Strategy: "LEAST_OUTSTANDING_REQUESTS", Extra: extra}, prefixAware(0)}
	configs[2].Extra = extra
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: configs[0]})
	const prompts, questions = 4, 5
	sent := 0
	for i, config := range configs {
		if i > 0 {
			if err := s.SetConfig(t.Context(), config); err != nil {
				t.Fatal(err)
			}
		}
		for p := range prompts {
			system := strings.Repeat(fmt.Sprintf("%s, rule %d. ", canary, p), 200)[:2304]
			for q := range questions {
				body := chat(system, fmt.Sprintf("question %d", q), q%2 == 0)
				if _, err := served(t.Context(), s, "/v1/chat/completions", body, "x-amzn-sagemaker-prefix-aware-id", canary); err != nil {
					t.Fatal(err)
				}
				sent++
			}
		}
	}
	noMisses(t, s)
	atRest(t, s)
	awaitRecorded(t, s, sent)
	got := readRecording(t, folder, canary, "llama-70b", "question")
	if len(got.Requests) != sent || got.SampleRatio != 1 || got.BlockTokens != trace.ChunkTokens {
		t.Fatalf("%d requests of %d, ratio %v, block of %d", len(got.Requests), sent, got.SampleRatio, got.BlockTokens)
	}
	first := make(map[uint64]int)
	last := make(map[uint64]int)
	for _, r := range got.Requests {
		if len(r.Chunks) != 9 || r.Input < 2304/4 || r.Output < 1 || len(r.Tenant) != 16 || len(r.Model) != 16 {
			t.Fatalf("%d chunks, %d tokens in, %d out, tenant %q, model %q", len(r.Chunks), r.Input, r.Output, r.Tenant, r.Model)
		}
		first[r.Chunks[0]]++
		last[r.Chunks[8]]++
	}
	for _, groups := range []map[uint64]int{first, last} {
		if len(groups) != prompts {
			t.Errorf("%d different beginnings of %d", len(groups), prompts)
		}
		for _, n := range groups {
			if n != sent/prompts {
				t.Errorf("%d requests of %d have the same beginning", n, sent/prompts)
			}
		}
	}
	simulated := simulateJSON(t, "-trace", folder, "-policy", "auto", "-replicas", "3")
	if r := simulated.Results[0]; r.Requests != sent || r.HitRate < 0.7 {
		t.Errorf("simulated %d requests, %.2f of them hit", r.Requests, r.HitRate)
	}
	if strings.Contains(s.Warmpath.Output(), canary) {
		t.Error("the prompt is in the log")
	}
	checkOtherSalt(t, s, got)
}

// checkOtherSalt lets the same request be recorded with another salt, which takes
// a restart.
func checkOtherSalt(t *testing.T, s *stack.Stack, before trace.Trace) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "others")
	config := stack.Config{Strategy: "RANDOM", Extra: recordInto(t, folder, "pepper")}
	if err := s.SetConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if out := s.Warmpath.Output(); !strings.Contains(out, "take effect at a restart") || !strings.Contains(out, "recording.folder recording.saltFile") {
		t.Error("nothing is said of a change that waits for a restart")
	}
	if err := s.Warmpath.Stop(15 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := s.StartWarmpath(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitRouting(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "steered requests", func() error {
		system := strings.Repeat("CANARY-7f3a, rule 0. ", 200)[:2304]
		_, err := served(t.Context(), s, "/v1/chat/completions", chat(system, "question 0", true), "x-amzn-sagemaker-prefix-aware-id", "CANARY-7f3a")
		if err != nil {
			return err
		}
		if n, err := s.Metric(t.Context(), "warmpath_decisions_total"); err != nil || n == 0 {
			return fmt.Errorf("%v decisions (%v)", n, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Warmpath.Stop(15 * time.Second); err != nil { // the last lines are written at the end
		t.Fatal(err)
	}
	after := readRecording(t, folder, "CANARY-7f3a").Requests[0]
	for _, r := range before.Requests {
		if r.Chunks[0] == after.Chunks[0] || r.Tenant == after.Tenant || r.Model == after.Model {
			t.Fatal("another salt gives the same hash")
		}
	}
}

func awaitRecorded(t *testing.T, s *stack.Stack, n int) {
	t.Helper()
	if err := s.Await(t.Context(), "recorded requests", func() error {
		if got, err := s.Metric(t.Context(), "warmpath_recording_written_total"); err != nil || got != float64(n) {
			return fmt.Errorf("%v of %d are written (%v)", got, n, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Metric(t.Context(), "warmpath_recording_dropped_total"); err != nil || got != 0 {
		t.Errorf("%v are dropped (%v)", got, err)
	}
}

// readRecording reads a folder of recordings, in which none of the words may be.
func readRecording(t *testing.T, folder string, words ...string) trace.Trace {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s (%v)", folder, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if bytes.Contains(data, []byte(word)) {
				t.Errorf("%s contains %q", filepath.Base(path), word)
			}
		}
		for line := range bytes.Lines(data) {
			var l struct {
				IDs []float64 `json:"hash_ids"`
			}
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatal(err)
			}
			for _, id := range l.IDs {
				if id >= 1<<53 {
					t.Errorf("the hash %v is not exact in every JSON reader", id)
				}
			}
		}
	}
	got, err := trace.Open(folder, "mooncake", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A folder that cannot be written fails no request.
func TestUnwritableRecording(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "folder")
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: stack.Config{Extra: fmt.Sprintf("recording: {folder: %q}", folder)}})
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // stands in the way
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := served(t.Context(), s, "/v1/chat/completions", chat("system", "question", true)); err != nil {
			t.Fatal(err)
		}
		if err := s.Await(t.Context(), "drops", func() error {
			if n, err := s.Metric(t.Context(), "warmpath_recording_dropped_total", `reason="write"`); err != nil || n != float64(i+1) {
				return fmt.Errorf("%v are dropped (%v)", n, err)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(s.Warmpath.Output(), "requests are not recorded"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// A body that is read for a recording is not repeated or cut either when
// warmpath dies in the middle of it, although the retries of its request are on
// from the beginning.
func TestKilledInMidUploadWhileRecording(t *testing.T) {
	t.Parallel()
	config := stack.Config{Strategy: "LEAST_OUTSTANDING_REQUESTS", Extra: recordInto(t, t.TempDir(), "salt")}
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: config})
	for round := range 4 {
		var uploads []*upload
		for range 6 {
			uploads = append(uploads, startUpload(t, s, true))
		}
		for _, u := range uploads {
			u.send(t, u.body[:len(u.body)/2])
		}
		s.Warmpath.Kill()
		for _, u := range uploads {
			u.send(t, u.body[len(u.body)/2:])
			u.finish(t, s, fmt.Sprint("round ", round))
		}
		if err := s.StartWarmpath(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.AwaitRouting(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
