package cpu

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ticks is the same from /proc/PID/stat, in its ticks of 10 ms: fields 14 and 15
// of proc_pid_stat(5), counted behind the command, which may hold anything.
func ticks(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var sum time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum
}

// It grows with what a process works, all of its threads, and agrees with what
// /proc says of the same moments.
func TestUsed(t *testing.T) {
	pid := os.Getpid()
	before, err := Used(pid)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan int)
	for range 2 {
		go func() {
			n := 0
			for ticks(t, pid) < before+300*time.Millisecond {
				n++
			}
			done <- n
		}()
	}
	<-done
	<-done
	low := ticks(t, pid)
	after, err := Used(pid)
	if err != nil {
		t.Fatal(err)
	}
	const slack = 30 * time.Millisecond // two fields, rounded, and another thread's last tick
	if high := ticks(t, pid); after < low-slack || after > high+slack || after < before+200*time.Millisecond {
		t.Errorf("used %v, then %v; /proc said %v and %v", before, after, low, high)
	}
}

func TestUsedByNobody(t *testing.T) {
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{child.Process.Pid, 0, -1} {
		if d, err := Used(pid); err == nil || !strings.Contains(err.Error(), strconv.Itoa(pid)) {
			t.Errorf("process %d has used %v, error %v", pid, d, err)
		}
	}
}
