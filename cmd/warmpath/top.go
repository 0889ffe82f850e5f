package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/warmpath/warmpath/internal/live/view"
)

const topUsage = `usage: warmpath top [flags]

Shows what a running server does: its endpoints, how much of the prompts is expected
in their caches, hot prefixes, and the last decisions. q or Ctrl-C ends it. Where
the output is no terminal, plain lines are printed one after the other.

`

// topOptions are the flags of top.
type topOptions struct {
	server   clientOptions
	interval time.Duration
	once     bool
}

// The terminal's own commands.
const (
	clearScreen = "\x1b[H\x1b[2J"
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

func top(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var o topOptions
	flags := flag.NewFlagSet("warmpath top", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.server.register(flags, "http://127.0.0.1:9004", "the server")
	flags.DurationVar(&o.interval, "interval", time.Second, "`time` from one view to the next, 100ms to 1m")
	flags.BoolVar(&o.once, "once", false, "print one view and end")
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, topUsage)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return usageError{err}
	case flags.NArg() != 0:
		return usageError{fmt.Errorf("top: want no arguments, got %d", flags.NArg())}
	case o.interval < 100*time.Millisecond || o.interval > time.Minute:
		return usageError{fmt.Errorf("top: -interval %v: want 100ms to 1m", o.interval)}
	}
	c, err := o.server.open()
	if err != nil {
		return usageError{fmt.Errorf("top: %w", err)}
	}
	defer c.close()
	if o.once {
		return showOnce(ctx, c, stdout)
	}
	if screen, ok := terminal(stdout); ok {
		return watchScreen(ctx, c, o.interval, screen, stdin)
	}
	return printLines(ctx, c, o.interval, stdout)
}

// snapshotOf asks for the state with the last minute and a few decisions.
func snapshotOf(ctx context.Context, c *client) (s view.Snapshot, err error) {
	return s, c.ask(ctx, http.MethodGet, "/api/live?seconds=60&decisions=30", nil, &s)
}

func showOnce(ctx context.Context, c *client, w io.Writer) error {
	s, err := snapshotOf(ctx, c)
	if err != nil {
		return err
	}
	const all = 1 << 20 // lines
	_, err = w.Write(topView(s, 0, all))
	return err
}

// printLines prints a line for each view, for logs and pipes. It ends when the server
// does not answer.
func printLines(ctx context.Context, c *client, interval time.Duration, w io.Writer) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		s, err := snapshotOf(ctx, c)
		if err != nil {
			return ended(err)
		}
		if _, err := io.WriteString(w, topLine(s)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// terminal returns the terminal that a writer is, if it is one.
func terminal(w io.Writer) (*os.File, bool) {
	f, ok := w.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// watchScreen draws a view after the other until q is pressed. What fails is shown, and asked
// again.
func watchScreen(ctx context.Context, c *client, interval time.Duration, screen *os.File, stdin io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if in, ok := stdin.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return fmt.Errorf("read keys: %w", err)
		}
		defer func() { _ = term.Restore(int(in.Fd()), before) }()
		go awaitQuit(in, stop) // it ends with the process: reading a terminal cannot be given up
	}
	_, _ = io.WriteString(screen, enterScreen)
	defer func() { _, _ = io.WriteString(screen, leaveScreen) }()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		width, height, err := term.GetSize(int(screen.Fd()))
		if err != nil {
			width, height = 80, 24
		}
		if _, err := screen.Write(draw(ctx, c, width, height)); err != nil {
			return fmt.Errorf("draw: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// draw returns one view for a screen. A terminal in raw mode wants carriage returns.
func draw(ctx context.Context, c *client, width, height int) []byte {
	text := []byte(nil)
	if s, err := snapshotOf(ctx, c); err != nil {
		text = fmt.Appendf(nil, "%v\nasking again; q ends\n", err)
	} else {
		text = topView(s, width, height-1)
	}
	return append([]byte(clearScreen), bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))...)
}

// awaitQuit calls quit when q or Ctrl-C is pressed, or no key can be any more.
func awaitQuit(keys io.Reader, quit func()) {
	defer quit()
	const ctrlC, ctrlD = 3, 4
	for r := bufio.NewReader(keys); ; {
		switch key, err := r.ReadByte(); {
		case err != nil, key == 'q', key == 'Q', key == ctrlC, key == ctrlD:
			return
		}
	}
}
