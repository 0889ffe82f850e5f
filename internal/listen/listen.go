// Package listen opens the sockets that the program serves on: TCP, and Unix
// domain sockets that are safe to open again after a crash.
package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// UnixPrefix marks the address of a Unix domain socket, before its path.
const UnixPrefix = "unix:"

// Open listens on "host:port", or on "unix:" and an absolute path. The socket of a
// process that has died is replaced; that of one which lives, and any file that
// is no socket, is an error that names it. Closing the listener removes the
// socket.
//
// mode says who may connect to a Unix socket, whatever the umask; on Linux from
// the first instant.
func Open(ctx context.Context, address string, mode fs.FileMode) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, UnixPrefix)
	if !isUnix {
		return new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	listener, err := bind(ctx, path, mode)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode.Perm()); err != nil { // the umask may have taken some of it
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// bind makes a Unix socket with no more than the mode. Linux gives its file the
// mode that the socket has when it is bound; elsewhere setting that may fail, and
// then the umask decides until Open sets the mode of the file.
func bind(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), uint32(mode.Perm())) })
	}}
	return config.Listen(ctx, "unix", path)
}

// dialTimeout is how long a socket that is there may take to say that it lives.
const dialTimeout = time.Second

// removeStale makes way for a socket: it removes one that nobody serves on.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and no socket (%v): remove it or choose another path", path, info.Mode())
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	connection, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = connection.Close()
		return fmt.Errorf("another process serves on the socket %s", path)
	case errors.Is(err, fs.ErrNotExist): // it has just gone
		return nil
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("cannot tell whether a process serves on the socket %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace the socket of a process that has ended: %w", err)
	}
	return nil
}
