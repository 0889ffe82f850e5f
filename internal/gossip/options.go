package gossip

import (
	"log/slog"
	"time"

	"github.com/hashicorp/memberlist"
)

// Options say how a process takes part.
type Options struct {
	// Listen is where to hear others, "ip:port", over UDP and TCP; port 0 takes a
	// free one.
	Listen string
	// Advertise is where others reach this process, "ip:port"; empty for Listen, or
	// with that on all interfaces for the machine's first private address.
	Advertise string
	// Join are others to begin with, "host:port"; a name may stand for several. The
	// process's own address among them does no harm.
	Join []string
	// Key encrypts and authenticates what is sent: 16, 24 or 32 bytes, the same for
	// all; empty for neither.
	Key []byte
	// Router is the process's random number, not 0.
	Router uint64
	// Fleet is what is told of, and to.
	Fleet Fleet
	// Observer is told of messages.
	Observer Observer
	Log      *slog.Logger

	// transport replaces the sockets, in tests.
	transport memberlist.Transport
}

// Fleet is the endpoints of this process. Its methods are called by one goroutine.
type Fleet interface {
	// Endpoints calls f for every endpoint of a membership, once each: what this
	// process has outstanding there, and the prefill that it has sent there so far.
	Endpoints(f func(address string, outstanding int64, given time.Duration))
	// Placed calls f for requests that were sent to endpoints since the last call:
	// the levels of their prompts that are new there. These are valid until f returns.
	Placed(f func(address string, levels []uint64))
	// SetOthers says how many requests other processes have outstanding.
	SetOthers(of func(address string) int64)
	// GiveElsewhere says that another process has sent prefill to an endpoint, and
	// PlaceElsewhere a request.
	GiveElsewhere(address string, work time.Duration)
	PlaceElsewhere(address string, levels []uint64)
	// SetRouters says how many processes there are, this one included, and whether
	// any other is heard.
	SetRouters(n int, heard bool)
}

// Observer is told of messages, by several goroutines. Nil functions are left out.
type Observer struct {
	// Sent and Received are told of every message of counts.
	Sent, Received func()
	// Failed is told of a message that could not be sent or made no sense.
	Failed func()
}

func (o Observer) sent()     { call(o.Sent) }
func (o Observer) received() { call(o.Received) }
func (o Observer) failed()   { call(o.Failed) }

func call(f func()) {
	if f != nil {
		f()
	}
}
