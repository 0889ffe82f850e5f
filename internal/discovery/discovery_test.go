package discovery

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

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFileGolden plays the life of a membership file. Rewrite with -rewrite.
//
//	file        the next content of the file
//	unreadable  the next reading fails with this text
func TestFileGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		var last Update
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			event := watch.Event{Data: []byte(d.Input)}
			if d.Cmd == "unreadable" {
				event = watch.Event{Err: errors.New(d.Input)}
			}
			last = next(last, "endpoints.yaml", event)
			return describe(last)
		})
	})
}

func describe(u Update) string {
	var b strings.Builder
	for _, e := range u.Set.Endpoints() {
		fmt.Fprintf(&b, "%s weight=%d %s", e.Address, e.Weight, e.State)
		if slices.Contains(u.Kept, e.Address) {
			b.WriteString(" (kept)")
		}
		b.WriteByte('\n')
	}
	if u.Set.Len() == 0 {
		b.WriteString("empty\n")
	}
	if u.Err != nil {
		fmt.Fprintf(&b, "error: %v\n", u.Err)
	}
	for _, p := range u.Problems {
		fmt.Fprintf(&b, "problem: %v\n", p)
	}
	return b.String()
}

// Times and errors of a file's life, in no real time.
func TestFileRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		contents := []string{"", "{endpoints: [{address: '10.0.0.1:1'}]}", "{endpoints: [{address: '10.0.0.1:1', weight: 0}]}", "{endpoints: []}"}
		source := &File{Path: "e", Interval: time.Second, Read: func(string) ([]byte, error) {
			i := min(int(time.Since(start)/(10*time.Second)), len(contents)-1)
			return []byte(contents[i]), nil
		}}
		var got []string
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		err := source.Run(ctx, func(u Update) {
			good := "never"
			if !u.LastGood.IsZero() {
				good = u.LastGood.Sub(start).String()
			}
			got = append(got, fmt.Sprintf("%v: %d members, failed %t, last good %s", u.At.Sub(start), u.Set.Len(), u.Err != nil, good))
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run returned %v", err)
		}
		want := []string{
			"0s: 0 members, failed true, last good never",
			"11s: 1 members, failed false, last good 11s",
			"21s: 1 members, failed true, last good 11s",
			"31s: 0 members, failed false, last good 31s",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestStaticRun(t *testing.T) {
	c := config.Membership{Static: []fleet.Endpoint{{Address: "10.0.0.1:1", Weight: 1}}}
	ctx, cancel := context.WithCancel(t.Context())
	updates := 0
	err := New(c, "warmpath.yaml").Run(ctx, func(u Update) {
		updates++
		if u.Set.Len() != 1 || u.Err != nil || u.LastGood.IsZero() {
			t.Errorf("update %+v", u)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) || updates != 1 {
		t.Errorf("Run returned %v after %d updates", err, updates)
	}
}

func TestNewReadsBesideTheConfiguration(t *testing.T) {
	source, ok := New(config.Membership{File: "e.yaml"}, "conf/warmpath.yaml").(*File)
	if !ok || source.Path != filepath.Join("conf", "e.yaml") {
		t.Errorf("source %+v", source)
	}
}

func TestReadFile(t *testing.T) {
	set, err := ReadFile("../../examples/quickstart/endpoints.yaml")
	if err != nil || set.Len() != 7 {
		t.Errorf("quickstart: %d endpoints, %v", set.Len(), err)
	}
	if _, err := ReadFile("absent.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "e.yaml")
	if err := os.WriteFile(path, []byte("endpoints: [{address: 'a:1'}, {address: '10.0.0.1:1', weight: 0}]\nmore: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var problems config.Problems
	if _, err := ReadFile(path); !errors.As(err, &problems) || len(problems) != 3 {
		t.Errorf("want three problems, got %v", err)
	}
}

// line is one entry of a random file: what is wrong with it, if anything.
type line struct {
	address string
	weight  int // out of range when 0
}

// Members change as a naive reading of the rules says, file after file: an
// entry is good, or names a member, or does not count.
func TestFileTwin(t *testing.T) {
	entry := rapid.Custom(func(t *rapid.T) line {
		host := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "gpu-1"}).Draw(t, "host")
		return line{host + ":80", rapid.IntRange(0, 3).Draw(t, "weight")}
	})
	rapid.Check(t, func(t *rapid.T) {
		var last Update
		members := map[string]int{}
		for range rapid.IntRange(1, 6).Draw(t, "files") {
			lines := rapid.SliceOfN(entry, 0, 6).Draw(t, "lines")
			last = next(last, "e", watch.Event{Data: []byte(write(lines))})
			members = twin(members, lines)
			if got := weights(last.Set); fmt.Sprint(got) != fmt.Sprint(members) {
				t.Fatalf("%v: members %v, want %v", lines, got, members)
			}
		}
	})
}

func write(lines []line) string {
	text := "endpoints: [\n"
	for _, l := range lines {
		text += fmt.Sprintf("{address: '%s', weight: %d},\n", l.address, l.weight)
	}
	return text + "]"
}

func weights(s fleet.Set) map[string]int {
	m := map[string]int{}
	for _, e := range s.Endpoints() {
		m[e.Address] = int(e.Weight)
	}
	return m
}

func twin(members map[string]int, lines []line) map[string]int {
	good := map[string]int{}
	for _, l := range slices.Backward(lines) {
		if l.weight > 0 && l.address != "gpu-1:80" {
			good[l.address] = l.weight
		}
	}
	if len(good) == 0 && len(lines) > 0 {
		return members
	}
	for _, l := range lines {
		weight, member := members[l.address]
		if _, replaced := good[l.address]; member && !replaced {
			good[l.address] = weight
		}
	}
	return good
}
