// Package cpu measures how much processor time a process has used.
package cpu

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Used returns the user and system time of all threads of a process since its
// start, those included that have ended. The error says that there is no such
// process.
//
// It reads the process's CPU-time clock (clock_getcpuclockid(3)), which counts
// nanoseconds. The same time stands in /proc/PID/stat, in ticks of 10 ms: too
// coarse for a round of half a second.
func Used(pid int) (time.Duration, error) {
	if pid <= 0 {
		return 0, fmt.Errorf("processor time of process %d: want a process id above 0", pid)
	}
	var t unix.Timespec
	err := unix.ClockGettime(clockOf(pid), &t)
	if errors.Is(err, unix.EINVAL) {
		err = errors.New("there is none")
	}
	if err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// clockOf is the kernel's number for a process's clock of scheduled time
// (CPUCLOCK_SCHED in linux/posix-timers.h).
func clockOf(pid int) int32 {
	const scheduled = 2
	return ^int32(pid)<<3 | scheduled
}
