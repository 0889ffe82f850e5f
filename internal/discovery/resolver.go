package discovery

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/warmpath/warmpath/internal/config"
)

// newResolver returns Go's resolver, on every system and with StrictErrors: it
// tells a failure from an empty answer then, also where one of two families
// failed. Of an answer over which it stumbles it would return the part before;
// what it reads is looked through first.
func newResolver(c config.DNS) *net.Resolver {
	return &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if c.TCP {
			network = "tcp"
		}
		if c.Server != "" {
			address = c.Server
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		// The context is that of one exchange. The resolver itself gives up then, but
		// goes on reading.
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		if packets, ok := conn.(*net.UDPConn); ok {
			return wholePackets{packets}, nil
		}
		return &wholeStream{Conn: conn}, nil
	}}
}

// errMalformed does not say what is wrong: of the two kinds of addresses the one
// that is read last would be told of, each time another.
var errMalformed = errors.New("malformed answer")

// checkAnswer returns an error unless every record of the answer can be read.
func checkAnswer(message []byte) error {
	var p dnsmessage.Parser
	_, err := p.Start(message)
	if err == nil {
		err = p.SkipAllQuestions()
	}
	if err == nil {
		_, err = p.AllAnswers()
	}
	if err != nil {
		return errMalformed
	}
	return nil
}

// wholePackets refuses malformed answers. It stays a net.PacketConn, by which the
// resolver tells UDP.
type wholePackets struct{ *net.UDPConn }

// Read implements net.Conn.
func (c wholePackets) Read(b []byte) (int, error) {
	n, err := c.UDPConn.Read(b)
	if err == nil {
		err = checkAnswer(b[:n])
	}
	return n, err
}

// wholeStream does so over TCP, where the length of a message precedes it.
type wholeStream struct {
	net.Conn
	checked bytes.Buffer // what has not been handed on
}

// Read implements net.Conn.
func (c *wholeStream) Read(b []byte) (int, error) {
	if c.checked.Len() == 0 {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	return c.checked.Read(b)
}

// fill reads one message, of at most 64 KiB.
func (c *wholeStream) fill() error {
	var length [2]byte
	if _, err := io.ReadFull(c.Conn, length[:]); err != nil {
		return err
	}
	message := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(c.Conn, message); err != nil {
		return err
	}
	if err := checkAnswer(message); err != nil {
		return err
	}
	c.checked.Write(length[:])
	c.checked.Write(message)
	return nil
}
