package stack

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenFiles is how many file descriptors the process has open.
func (p *Process) OpenFiles() (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("file descriptors of %s: %w", p.name, err)
	}
	return len(entries), nil
}

// LimitFiles lets the running process have no file descriptor from n on. The
// returned function takes the limit back.
func (p *Process) LimitFiles(n uint64) (restore func() error, err error) {
	var before unix.Rlimit
	if err := unix.Prlimit(p.PID(), unix.RLIMIT_NOFILE, nil, &before); err != nil {
		return nil, fmt.Errorf("limit of file descriptors of %s: %w", p.name, err)
	}
	limited := unix.Rlimit{Cur: n, Max: before.Max}
	if err := unix.Prlimit(p.PID(), unix.RLIMIT_NOFILE, &limited, nil); err != nil {
		return nil, fmt.Errorf("limit the file descriptors of %s to %d: %w", p.name, n, err)
	}
	return func() error {
		if err := unix.Prlimit(p.PID(), unix.RLIMIT_NOFILE, &before, nil); err != nil {
			return fmt.Errorf("limit of file descriptors of %s back to %d: %w", p.name, before.Cur, err)
		}
		return nil
	}, nil
}
