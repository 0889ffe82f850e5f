//go:build !linux

package stack

import "errors"

var errLinuxOnly = errors.New("limits of another process can be set on Linux only")

// OpenFiles is how many file descriptors the process has open: on Linux only.
func (p *Process) OpenFiles() (int, error) { return 0, errLinuxOnly }

// LimitFiles lets the running process have no more files: on Linux only.
func (p *Process) LimitFiles(uint64) (restore func() error, err error) { return nil, errLinuxOnly }
