package stack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is a program that this one started. Its output is kept, so that it
// can be shown when something went wrong.
type Process struct {
	name   string
	cmd    *exec.Cmd
	output *buffer
	done   chan struct{} // closed when it has ended
	err    error         // how it ended, set before done is closed
}

// StartProcess runs a program with extra environment variables. The program does not
// get the terminal's signals: whoever started it ends it.
func StartProcess(name string, env []string, command ...string) (*Process, error) {
	p := &Process{name: name, cmd: exec.Command(command[0], command[1:]...), output: new(buffer), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	go func() {
		// Linux ends the child with the thread that started it, so that thread
		// has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output is what the process has printed, the last MiB of it.
func (p *Process) Output() string { return p.output.String() }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Stop asks the process to end and kills it when it does not within grace.
func (p *Process) Stop(grace time.Duration) error {
	_ = p.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		_ = p.Signal(syscall.SIGKILL)
		<-p.done
		return fmt.Errorf("%s did not end within %s of SIGTERM and was killed", p.name, grace)
	}
}

// Kill ends the process as a crash would.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Await polls until ready returns nil. It gives up when ctx ends or the process
// does, with the last reason and what the process printed.
func (p *Process) Await(ctx context.Context, ready func() error) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-p.done:
			return fmt.Errorf("%s ended at its start: %v\n%s", p.name, p.err, p.Output())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.name, err, p.Output())
		}
	}
}

// buffer keeps the end of what is written to it.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

const bufferLimit = 1 << 20

var _ io.Writer = (*buffer)(nil)

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if over := b.data.Len() + len(p) - bufferLimit; over > 0 {
		b.data.Next(over)
	}
	return b.data.Write(p)
}

// String returns what is kept.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}
