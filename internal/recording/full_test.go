package recording

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/internal/trace"
)

// disk has room for so many bytes, and keeps what a write had room for.
type disk struct {
	room    int
	cutFail bool // files cannot be truncated
	created int
}

// onDisk is a file of it.
type onDisk struct {
	file
	disk *disk
	size int
}

func (d *disk) create(path string) (file, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	d.created++
	return &onDisk{file: f, disk: d}, nil
}

func (f *onDisk) Write(p []byte) (int, error) {
	part := p[:min(len(p), f.disk.room)]
	n, err := f.file.Write(part)
	f.disk.room, f.size = f.disk.room-n, f.size+n
	if err == nil && n < len(p) {
		err = errors.New("no space left")
	}
	return n, err
}

func (f *onDisk) Truncate(size int64) error {
	if f.disk.cutFail {
		return errors.New("cannot be cut")
	}
	f.disk.room, f.size = f.disk.room+f.size-int(size), int(size)
	return f.file.Truncate(size)
}

// onFull returns a writer onto a disk, and what sends it a request that is written
// at once.
func onFull(folder string, c *counts, d *disk) (w *writer, send func()) {
	r := New(c.options(folder))
	w = &writer{recorder: r, files: filesOf(r.options)}
	w.files.create = d.create
	return w, func() {
		r.Begin(beginning("a", 500)).End(answeredAfter(time.Second))
		w.add(<-r.queue)
		w.flush()
	}
}

// old makes recordings of a year, and returns a check that they are all there.
func old(t *testing.T, folder string, year int) (check func()) {
	t.Helper()
	var paths []string
	for i := range 3 {
		path := filepath.Join(folder, fmt.Sprintf("warmpath-%d0101T00000%d.000Z-000.jsonl", year, i))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return func() {
		t.Helper()
		for _, path := range paths {
			if _, err := os.Stat(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// filesIn returns the recordings of a folder.
func filesIn(t *testing.T, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "warmpath-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A disk that is full for a while costs what comes in that time, and none of the
// recordings from before.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, c, d := t.TempDir(), new(counts), &disk{room: 10}
		check := old(t, folder, 1999)
		w, send := onFull(folder, c, d)
		for range 100 {
			time.Sleep(time.Second)
			send()
			check()
		}
		if d.created != 1 || c.dropped[Write] != 100 || len(c.failing) != 1 || d.room != 10 {
			t.Errorf("%+v, %+v", c, d)
		}
		d.room = 1 << 20
		send()
		send()
		if got := filesIn(t, folder); len(got) != 3 || got[0] != filepath.Join(folder, "warmpath-19990101T000001.000Z-000.jsonl") {
			t.Errorf("files %v", got)
		}
		if d.room = 10; c.written != 2 {
			t.Errorf("%+v", c)
		}
		send() // the disk is full again, in the middle of a file
		d.room = 1 << 20
		send()
		w.finish()
		if got, err := trace.Open(filesIn(t, folder)[2], "mooncake", trace.Options{}); err != nil || len(got.Requests) != 3 || d.created != 1 {
			t.Errorf("%d requests, %v, %d files begun", len(got.Requests), err, d.created)
		}
	})
}

// A process that comes up on a full disk and ends there leaves nothing behind, and
// removes nothing.
func TestFullFromTheStart(t *testing.T) {
	folder := t.TempDir()
	check := old(t, folder, 1999)
	for range 5 {
		w, send := onFull(folder, new(counts), new(disk))
		send()
		w.finish()
	}
	check()
	if got := filesIn(t, folder); len(got) != 3 {
		t.Errorf("files %v", got)
	}
}

// A file that cannot be cut is not gone on in; it goes, if it has no whole line.
func TestCannotBeCut(t *testing.T) {
	folder, c, d := t.TempDir(), new(counts), &disk{room: 10, cutFail: true}
	check := old(t, folder, 1999)
	_, send := onFull(folder, c, d)
	for range 5 {
		send()
		d.room = 10
	}
	check()
	if got := filesIn(t, folder); len(got) != 3 || d.created != 5 || c.dropped[Write] != 5 {
		t.Errorf("files %v, %d begun, %+v", got, d.created, c)
	}
}

// Where the clock was set back, the file that is written has the oldest name, and
// is not the one that goes.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in the year 2000
		folder, c := t.TempDir(), new(counts)
		old(t, folder, 2025)
		w, send := onFull(folder, c, &disk{room: 1 << 20})
		send()
		w.finish()
		if got := filesIn(t, folder); len(got) != 3 || filepath.Base(got[0])[:13] != "warmpath-2000" {
			t.Errorf("files %v", got)
		}
	})
}

// Writing that fails now and then is told of once; that it works, when nothing has
// failed for a minute.
func TestToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d := new(counts), new(disk)
		w, send := onFull(t.TempDir(), c, d)
		after := func(wait time.Duration, room int) {
			time.Sleep(wait)
			d.room = room
			send()
		}
		for range 50 {
			after(time.Second, 0)
			after(calmFor-2*time.Second, 1<<20)
		}
		if len(c.failing) != 1 || c.failing[0] == nil {
			t.Errorf("told %v", c.failing)
		}
		after(2*time.Second, 1<<20)
		after(time.Hour, 1<<20)
		if len(c.failing) != 2 || c.failing[1] != nil {
			t.Errorf("told %v", c.failing)
		}
		after(time.Second, 0)
		if len(c.failing) != 3 || c.failing[2] == nil {
			t.Errorf("told %v", c.failing)
		}
		w.finish()
	})
}

// A folder that cannot be made is told of, and so is its return.
func TestUnwritable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, c := filepath.Join(t.TempDir(), "folder"), new(counts)
		if err := os.WriteFile(folder, nil, 0o600); err != nil { // a file stands in the way
			t.Fatal(err)
		}
		w, send := onFull(folder, c, &disk{room: 1 << 20})
		send()
		send()
		if err := os.Remove(folder); err != nil {
			t.Fatal(err)
		}
		time.Sleep(calmFor)
		send()
		if err := os.RemoveAll(folder); err != nil { // somebody cleans up while the file is open
			t.Fatal(err)
		}
		send()
		w.finish()
		if len(c.failing) != 2 || c.failing[0] == nil || c.failing[1] != nil || c.dropped[Write] != 2 || c.written != 2 {
			t.Errorf("%+v", c)
		}
		if got, err := trace.Open(folder, "mooncake", trace.Options{}); err != nil || len(got.Requests) != 1 {
			t.Errorf("%d requests, %v", len(got.Requests), err)
		}
	})
}

// A folder need not be there, but what it is to be must not be anything else.
func TestCheckFolder(t *testing.T) {
	folder := t.TempDir()
	taken := filepath.Join(folder, "taken")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{
		folder: true, filepath.Join(folder, "a", "b"): true, "relative": true,
		taken: false, filepath.Join(taken, "a"): false, filepath.Join(taken, "a", "b"): false, "zero\x00": false,
	} {
		if err := CheckFolder(path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}
