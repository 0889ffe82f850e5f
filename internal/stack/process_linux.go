package stack

import "syscall"

// childAttributes keeps the terminal's signals from a child and ends it with
// this process, even when that is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
