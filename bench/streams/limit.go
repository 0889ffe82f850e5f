package main

import (
	"fmt"
	"syscall"
)

// allowFiles lets this process, and those that it starts, have as many file
// descriptors as the system permits: every stream over HTTP/1.1 takes one at its
// client, two in Envoy and one at its replica.
func allowFiles() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("limit of file descriptors: %w", err)
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("raise the limit of file descriptors to %d: %w", l.Max, err)
	}
	return nil
}
