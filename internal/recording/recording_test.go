package recording

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counts are what a recorder has told.
type counts struct {
	mu      sync.Mutex
	written int
	dropped map[Reason]int
	failing []error
}

func (c *counts) options(folder string) Options {
	c.dropped = make(map[Reason]int)
	return Options{
		Folder: folder, Ratio: 1, FileBytes: 1 << 20, Files: 3, Salt: Salt{1},
		Written: func(n int) { c.written += n },
		Dropped: func(why Reason, n int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.dropped[why] += n
		},
		Failing: func(err error) { c.failing = append(c.failing, err) },
	}
}

// beginning is that of a prompt of so many characters; prompts of one name begin
// alike.
func beginning(name string, chars int) extproc.Beginning {
	b := extproc.Beginning{StandsFor: 1, Chars: chars, Length: chars, Generates: true}
	for i := range chars / 256 {
		b.Levels = append(b.Levels, xxhash.Sum64String(fmt.Sprint(name, i)))
	}
	b.Key = xxhash.Sum64String(fmt.Sprint(name, "whole", chars))
	return b
}

func answeredAfter(d time.Duration) extproc.Outcome {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return extproc.Outcome{Began: began, Decided: began, Answered: began, Ended: began.Add(d), Status: 200, Streamed: true}
}

func record(r *Recorder, b extproc.Beginning, o extproc.Outcome) {
	first := b.Key
	if len(b.Levels) > 0 {
		first = b.Levels[0]
	}
	if b.StandsFor = r.Sampled(first); b.StandsFor == 0 {
		return
	}
	if e := r.Begin(b); e != nil {
		e.End(o)
	}
}

// What is recorded is read again: lengths, times, and which prompts begin alike.
func TestRoundTrip(t *testing.T) {
	folder, c := t.TempDir(), new(counts)
	r := New(c.options(folder))
	r.Start()
	lengths := []int{1, 3, 4, 252, 253, 255, 256, 257, 259, 260, 511, 512, 1000, 300_000}
	for _, n := range lengths {
		record(r, beginning("a", n), answeredAfter(2*time.Second))
	}
	cut := beginning("a", 2560)
	cut.Length = 1 << 21
	record(r, cut, answeredAfter(time.Second))
	r.Close()
	if c.written != len(lengths)+1 || len(c.dropped) > 0 || len(c.failing) > 0 {
		t.Errorf("%+v", c)
	}
	got, err := trace.Open(folder, "mooncake", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.BlockTokens != trace.ChunkTokens || got.SampleRatio != 1 || len(got.Notes) > 0 {
		t.Errorf("block of %d, ratio %v, notes %v", got.BlockTokens, got.SampleRatio, got.Notes)
	}
	longest := got.Requests[len(lengths)-1].Chunks
	for i, n := range lengths {
		q := got.Requests[i]
		if q.Input != (n+3)/4 || q.Output != 60 || len(q.Chunks) != (n+3)/4/64 {
			t.Errorf("%d characters: %d tokens in, %d out, %d chunks", n, q.Input, q.Output, len(q.Chunks))
		}
		if whole := n / 256; !slices.Equal(q.Chunks[:whole], longest[:whole]) {
			t.Errorf("%d characters: other chunks than of a longer prompt that begins alike", n)
		}
	}
	if q := got.Requests[len(lengths)]; q.Input != 1<<19 || !slices.Equal(q.Chunks, longest[:10]) {
		t.Errorf("a prompt of which the beginning was read: %d tokens, %d chunks", q.Input, len(q.Chunks))
	}
}

func TestOutputTokens(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		answered, ended time.Duration
		streamed        bool
		want            int
	}{
		{0, 0, true, 1},
		{time.Second, 3 * time.Second, true, 60},
		{3 * time.Second, 3 * time.Second, false, 90},
		{time.Second, 1000 * time.Hour, true, 1 << 20},
	} {
		got := outputTokens(extproc.Outcome{
			Decided: start, Answered: start.Add(c.answered), Ended: start.Add(c.ended), Streamed: c.streamed,
		})
		if got != c.want {
			t.Errorf("%+v: %d tokens", c, got)
		}
	}
}

// Hashes fit into every reader's numbers, depend on the salt, on what they are of and
// on nothing else.
func TestHashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		salt, other := Salt{byte(a)}, Salt{byte(a), 1}
		if n := salt.number(ofBlock, a); n >= 1<<53 || n != salt.number(ofBlock, a) || n == salt.number(ofSample, a) || n == other.number(ofBlock, a) {
			t.Errorf("%x: hash %x", a, n)
		}
		if (salt.number(ofBlock, a) == salt.number(ofBlock, b)) != (a == b) {
			t.Errorf("%x and %x", a, b)
		}
		name := rapid.String().Draw(t, "name")
		h := salt.name(ofTenant, name)
		if name == "" && h == "" {
			return
		}
		if len(h) != 16 || h != salt.name(ofTenant, name) || h == salt.name(ofModel, name) || h == other.name(ofTenant, name) || h == salt.name(ofTenant, name+"x") {
			t.Errorf("%q: hash %q", name, h)
		}
	})
	if a, b := NewSalt(), NewSalt(); a == b {
		t.Error("two new salts are the same")
	}
}

func TestReadSalt(t *testing.T) {
	folder := t.TempDir()
	write := func(n int) string {
		path := filepath.Join(folder, fmt.Sprint(n))
		if err := os.WriteFile(path, bytes.Repeat([]byte("s"), n), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, err := ReadSalt(write(16))
	b, errB := ReadSalt(write(4096))
	if err != nil || errB != nil || a == b {
		t.Errorf("%v, %v", err, errB)
	}
	for path, want := range map[string]string{
		write(15): "15 bytes, want 16 to 4096", write(4097): "more than 4096 bytes",
		filepath.Join(folder, "none"): "none", folder: "salt",
	} {
		if _, err := ReadSalt(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// A sample has all requests of some beginnings and none of the others, and says
// how many requests there were.
func TestSample(t *testing.T) {
	folder, c := t.TempDir(), new(counts)
	o := c.options(folder)
	o.Ratio = 0.25
	r := New(o)
	r.Start()
	const beginnings, each = 400, 10
	for n := range each {
		for i := range beginnings {
			record(r, beginning(fmt.Sprint(i), 1024+256*n), answeredAfter(time.Second))
		}
	}
	r.Close()
	got, err := trace.Open(folder, "mooncake", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := make(map[uint64]int)
	for _, q := range got.Requests {
		first[q.Chunks[0]]++
	}
	for _, n := range first {
		if n != each {
			t.Errorf("%d of %d requests of a beginning are in the sample", n, each)
		}
	}
	if n := len(first); n < beginnings/5 || n > beginnings/3 {
		t.Errorf("%d of %d beginnings are in the sample", n, beginnings)
	}
	want := float64(len(got.Requests)) / (beginnings * each)
	if got.SampleRatio < want || got.SampleRatio > want*1.02 { // those behind the last are not in it
		t.Errorf("ratio %v, want %v", got.SampleRatio, want)
	}
	o.Ratio = 0
	if New(o).Sampled(1) != 0 {
		t.Error("a ratio of 0 samples")
	}
}

// Files are for their owner, not larger and not more than they may be; the
// oldest goes first, and what is not ours stays.
func TestRotation(t *testing.T) {
	folder, c := filepath.Join(t.TempDir(), "deep", "er"), new(counts)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	stranger := filepath.Join(folder, "warmpath-notes.jsonl")
	if err := os.WriteFile(stranger, []byte("not a trace"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := New(c.options(folder))
	w := &writer{recorder: r, files: files{folder: folder, bytes: 1 << 20, keep: 3}}
	const requests = 4000
	for i := range requests {
		r.Begin(beginning(fmt.Sprint(i), 20_000)).End(answeredAfter(time.Duration(i) * time.Millisecond))
		w.add(<-r.queue)
	}
	w.finish()
	found, err := filepath.Glob(filepath.Join(folder, "warmpath-2*.jsonl"))
	if err != nil || len(found) != 3 {
		t.Fatalf("files %v, %v", found, err)
	}
	last := 0
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil || info.Size() > 1<<20 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v bytes, %v, %v", path, info.Size(), info.Mode(), err)
		}
		got, err := trace.Open(path, "mooncake", trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		last += len(got.Requests)
	}
	if c.written != requests || last >= requests || last < requests/4 {
		t.Errorf("%d written, %d in the last files", c.written, last)
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Error(err)
	}
}

// A folder that cannot be written is told of once, and so is its return; nothing
// is waited for.
func TestUnwritable(t *testing.T) {
	folder, c := filepath.Join(t.TempDir(), "folder"), new(counts)
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // a file stands in the way
		t.Fatal(err)
	}
	r := New(c.options(folder))
	w := &writer{recorder: r, files: files{folder: folder, bytes: 1 << 20, keep: 3}}
	send := func() {
		r.Begin(beginning("a", 500)).End(answeredAfter(time.Second))
		w.add(<-r.queue)
		w.flush()
	}
	send()
	send()
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	send()
	if err := os.RemoveAll(folder); err != nil { // somebody cleans up while the file is open
		t.Fatal(err)
	}
	send()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // and puts something else there
		t.Fatal(err)
	}
	send()
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	send()
	w.finish()
	if len(c.failing) != 4 || c.failing[0] == nil || c.failing[1] != nil || c.failing[2] == nil || c.failing[3] != nil ||
		c.dropped[Write] != 3 || c.written != 3 {
		t.Errorf("%+v", c)
	}
	if got, err := trace.Open(folder, "mooncake", trace.Options{}); err != nil || len(got.Requests) != 1 {
		t.Errorf("%d requests, %v", len(got.Requests), err)
	}
}

// full is a file on a disk that has room for so many bytes.
type full struct {
	*os.File
	room int
}

func (f *full) Write(p []byte) (int, error) {
	if len(p) <= f.room {
		f.room -= len(p)
		return f.File.Write(p)
	}
	n, _ := f.File.Write(p[:f.room])
	return n, errors.New("no space left")
}

// A file on a full disk has whole lines only.
func TestNoPartOfALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &files{folder: filepath.Dir(path), bytes: 1 << 20, keep: 3, file: &full{file, 9}}
	if err := f.write([]byte("whole\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.write([]byte("lost\n")); err == nil || !strings.Contains(err.Error(), "no space left") || f.file != nil {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "whole\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// What cannot be kept is dropped and counted, and all that was held is given back.
func TestBounds(t *testing.T) {
	c := new(counts)
	r := New(c.options(t.TempDir()))
	record(r, beginning("a", 500), extproc.Outcome{})
	refused := answeredAfter(time.Second)
	refused.Status = 503
	record(r, beginning("a", 500), refused)
	for range queueLength + 5 { // nobody writes yet
		record(r, beginning("a", 500), answeredAfter(time.Second))
	}
	long := beginning("long", extproc.RecordChars)
	running := 0
	var kept []extproc.Recording
	for r.held.Load()+int64(len(long.Levels)) < maxHeld-entryCost {
		running++
		kept = append(kept, r.Begin(long))
	}
	if got := r.Begin(long); got != nil {
		t.Error("more is held than may be")
	}
	for _, e := range kept {
		e.End(extproc.Outcome{})
	}
	r.Start()
	r.Close()
	if c.dropped[Unanswered] != 2+running || c.dropped[Queue] != 5 || c.dropped[Memory] != 1 || c.written != queueLength {
		t.Errorf("%d ran, %+v", running, c)
	}
	if held := r.held.Load(); held != 0 {
		t.Errorf("%d hashes are still held", held)
	}
}

// Nothing waits for more lines than a second.
func TestFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, c := t.TempDir(), new(counts)
		r := New(c.options(folder))
		r.Start()
		defer r.Close()
		record(r, beginning("a", 500), answeredAfter(time.Second))
		time.Sleep(flushEvery + time.Millisecond)
		synctest.Wait()
		if got, err := trace.Open(folder, "mooncake", trace.Options{}); err != nil || len(got.Requests) != 1 {
			t.Errorf("%v", err)
		}
	})
}

// Whether a request is sampled costs no memory.
func TestAllocations(t *testing.T) {
	o := new(counts).options(t.TempDir())
	o.Ratio = 0.5
	r := New(o)
	n := uint64(0)
	if got := testing.AllocsPerRun(1000, func() { n++; r.Sampled(n) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
