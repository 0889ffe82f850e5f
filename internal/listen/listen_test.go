package listen

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// die leaves a socket as a killed process does.
func die(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := Open(t.Context(), UnixPrefix+path, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestSocketOfADeadProcessIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	die(t, path)
	l := open(t, path)
	connection, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is there after it was closed (%v)", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	open(t, path("live"))
	if err := os.WriteFile(path("file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path("live"), path("link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"live":     "another process serves on the socket " + path("live"),
		"file":     path("file") + " is there and no socket",
		"link":     path("link") + " is there and no socket",
		"absent/s": path("absent/s"),
	} {
		if _, err := Open(t.Context(), UnixPrefix+path(name), 0o660); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	if text, err := os.ReadFile(path("file")); err != nil || string(text) != "precious" {
		t.Errorf("the file in the way has become %q (%v)", text, err)
	}
	if connection, err := net.Dial("unix", path("live")); err != nil {
		t.Errorf("the refusal has ended the live socket: %v", err)
	} else {
		_ = connection.Close()
	}
	taken, err := Open(t.Context(), "127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := Open(t.Context(), taken.Addr().String(), 0); err == nil {
		t.Error("a TCP port was opened twice")
	}
}

// The umask neither widens nor narrows who may connect, and there is no instant
// at which more could.
func TestMode(t *testing.T) {
	dir := t.TempDir()
	for umask, bound := range map[int]fs.FileMode{0: 0o660, 0o022: 0o640, 0o077: 0o600} {
		before := syscall.Umask(umask)
		first, err := bind(t.Context(), filepath.Join(dir, "b"), 0o660)
		syscall.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		if got := mode(t, filepath.Join(dir, "b")); got != bound {
			t.Errorf("umask %#o: bound with mode %#o, want %#o", umask, got, bound)
		}
		_ = first.Close()

		before = syscall.Umask(umask)
		l, err := Open(t.Context(), UnixPrefix+filepath.Join(dir, "s"), 0o660)
		syscall.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		if got := mode(t, filepath.Join(dir, "s")); got != 0o660 {
			t.Errorf("umask %#o: open with mode %#o, want 0660", umask, got)
		}
		_ = l.Close()
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}
