package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that looks as before is not read again for a while; one that looks
// different, or was changed just before it was read, is.
func TestReaderReadsWhatLooksDifferent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	readings := 0
	r := &reader{read: func(path string) ([]byte, error) {
		readings++
		return os.ReadFile(path)
	}}
	next := func(want string, wantReadings int) {
		t.Helper()
		data, err := r.again(path)
		if err != nil || string(data) != want || readings != wantReadings {
			t.Fatalf("read %q (%v) after %d readings, want %q after %d", data, err, readings, want, wantReadings)
		}
	}
	touch := func(age time.Duration) {
		t.Helper()
		at := time.Now().Add(-age).Truncate(time.Second) // as coarse clocks have it
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path, "one")
	touch(0)
	next("one", 1)
	next("one", 2) // just changed: another change might look alike
	write(t, path, "two")
	touch(0)
	next("two", 3)
	touch(time.Hour)
	next("two", 4)
	next("two", 4)
	write(t, path, "two and more")
	touch(time.Hour)
	next("two and more", 5) // only the size tells
	next("two and more", 5)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.again(path); err == nil {
		t.Fatal("read a file that is not there")
	}
	write(t, path, "two and less")
	touch(time.Hour)
	next("two and less", 7) // only the file itself tells
	r.at = r.at.Add(-trust)
	next("two and less", 8)
}
