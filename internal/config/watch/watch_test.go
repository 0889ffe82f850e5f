package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a file whose i-th reading is readings[i]; the last one stays. A
// reading that begins with "!" is an error.
type script struct {
	readings []string
	count    int
}

func (s *script) read(string) ([]byte, error) {
	now := s.readings[min(s.count, len(s.readings)-1)]
	s.count++
	if text, failed := strings.CutPrefix(now, "!"); failed {
		return nil, errors.New(text)
	}
	return []byte(now), nil
}

func describe(e Event) string {
	if e.Err != nil {
		return "!" + e.Err.Error()
	}
	return string(e.Data)
}

// play runs the watcher over all readings in no real time and returns what it
// reported, each with the time since the start.
func play(t *testing.T, seen []byte, readings ...string) (reported, times []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		reported, times = playInBubble(t, seen, readings)
	})
	return reported, times
}

func playInBubble(t *testing.T, seen []byte, readings []string) (reported, times []string) {
	start := time.Now()
	const interval = 200 * time.Millisecond
	file := &script{readings: readings}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(readings)+1)*interval+time.Millisecond)
	defer cancel()
	err := File{Path: "f", Interval: interval, Read: file.read}.Run(ctx, seen, func(e Event) {
		reported = append(reported, describe(e))
		times = append(times, time.Since(start).String())
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run returned %v", err)
	}
	return reported, times
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name     string
		seen     []byte
		readings []string
		want     []string
		at       []string
	}{
		{"first at once", nil, []string{"a"}, []string{"a"}, []string{"0s"}},
		{"seen already", []byte("a"), []string{"a", "a"}, nil, nil},
		{"changed before the start", []byte("a"), []string{"b"}, []string{"b"}, []string{"400ms"}},
		{"change", nil, []string{"a", "a", "b", "b", "b"}, []string{"a", "b"}, []string{"0s", "600ms"}},
		{"half written", nil, []string{"a", "b", "bc", "bcd", "bcd"}, []string{"a", "bcd"}, []string{"0s", "800ms"}},
		{"there and back", nil, []string{"a", "b", "a", "a"}, []string{"a"}, []string{"0s"}},
		{"flapping never settles", nil, []string{"a", "b", "c", "b", "c", "b", "c", "a", "a"}, []string{"a"}, []string{"0s"}},
		{"absent for an instant", nil, []string{"a", "!gone", "a"}, []string{"a"}, []string{"0s"}},
		{"absent, and the same again", nil, []string{"a", "!gone", "!gone", "!gone", "a", "a"}, []string{"a", "!gone", "a"}, []string{"0s", "400ms", "1s"}},
		{"two errors", nil, []string{"!x", "!x", "!y", "!y", "!x", "!x"}, []string{"!x", "!y", "!x"}, []string{"0s", "600ms", "1s"}},
		{"empty is content", nil, []string{"a", "", ""}, []string{"a", ""}, []string{"0s", "400ms"}},
		{"seen empty", []byte{}, []string{"", "", "!x"}, []string{"!x"}, []string{"800ms"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, at := play(t, c.seen, c.readings...)
			if !slices.Equal(got, c.want) || !slices.Equal(at, c.at) {
				t.Errorf("reported %q at %v, want %q at %v", got, at, c.want, c.at)
			}
		})
	}
}

// twin says the rule again in one pass over the whole history.
func twin(readings []string) []string {
	reported := readings[:1:1]
	for i := 1; i < len(readings); i++ {
		if readings[i] == readings[i-1] && readings[i] != reported[len(reported)-1] {
			reported = append(reported, readings[i])
		}
	}
	return reported
}

func TestRunTwin(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		readings := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "!x", "!y"}), 1, 40).Draw(r, "readings")
		// The last reading stays for the tick behind the script.
		want := twin(append(slices.Clone(readings), readings[len(readings)-1]))
		if got, _ := play(t, nil, readings...); !slices.Equal(got, want) {
			r.Fatalf("%q reported %q, want %q", readings, got, want)
		}
	})
}

func TestRunEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := File{Path: "f", Interval: time.Hour, Read: (&script{readings: []string{"a"}}).read}.Run(ctx, nil, func(Event) {})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
}

// The ways in which editors, tools and Kubernetes replace a file.
func TestRunOnDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "link")
	write(t, filepath.Join(dir, "v1", "file"), "one")
	write(t, filepath.Join(dir, "v2", "file"), "two")
	link(t, filepath.Join(dir, "v1"), filepath.Join(dir, "data"))
	link(t, filepath.Join("data", "file"), path)

	events := make(chan Event, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- File{Path: path, Interval: time.Millisecond}.Run(ctx, nil, func(e Event) { events <- e })
	}()
	await(t, events, "one")
	link(t, filepath.Join(dir, "v2"), filepath.Join(dir, "data")) // as a ConfigMap is swapped
	await(t, events, "two")
	write(t, filepath.Join(dir, "v2", "file"), "two, edited in place")
	await(t, events, "two, edited in place")
	write(t, filepath.Join(dir, "new"), "three")
	if err := os.Rename(filepath.Join(dir, "new"), path); err != nil {
		t.Fatal(err)
	}
	await(t, events, "three")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	await(t, events, fmt.Sprintf("!read file: stat %s: no such file or directory", path))
	write(t, path, "three")
	await(t, events, "three")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
}

func await(t *testing.T, events <-chan Event, want string) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	select {
	case e := <-events:
		if got := describe(e); got != want {
			t.Fatalf("reported %q, want %q", got, want)
		}
	case <-deadline.C:
		t.Fatalf("nothing reported, want %q", want)
	}
}

// write replaces the content in one system call after the truncation, which is
// as much as an in-place write can promise; the link is followed.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestReadFileRefuses(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	file, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(MaxBytes+1), file.Close()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		large:                        "more than 16777216 bytes",
		dir:                          "is not a regular file but d",
		filepath.Join(dir, "absent"): "no such file",
		"/dev/null":                  "is not a regular file but D",
	} {
		if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}
