package link

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that says what it hears.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return l.Addr().String()
}

// saysNew is says over a new connection.
func saysNew(address, word string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	return says(c, word)
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// says sends a word and waits for its return.
func says(c net.Conn, word string) error {
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, word); err != nil {
		return err
	}
	got := make([]byte, len(word))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != word {
		return errors.New("another word came back: " + string(got))
	}
	return nil
}

func TestLink(t *testing.T) {
	l, err := New(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := dial(t, l.Address())
	if err := says(c, "hello"); err != nil {
		t.Fatal(err)
	}

	l.Delay(60 * time.Millisecond)
	begin := time.Now()
	if err := says(c, "slowly"); err != nil || time.Since(begin) < 60*time.Millisecond {
		t.Errorf("%v after %v, want 60 ms or more", err, time.Since(begin))
	}
	l.Delay(0)

	l.Cut()
	if err := says(c, "gone"); err == nil {
		t.Error("a connection outlived the cut")
	}
	if err := saysNew(l.Address(), "in vain"); err == nil {
		t.Error("a new connection passed the cut")
	}
	l.Mend()
	if err := saysNew(l.Address(), "again"); err != nil {
		t.Errorf("after the cut: %v", err)
	}
}

// Without a target connections end, and nothing hangs.
func TestLinkToNobody(t *testing.T) {
	l, err := New("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := saysNew(l.Address(), "hello"); err == nil {
		t.Error("somebody answered")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
