package gossip

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/warmpath/warmpath/internal/gossip/merge"
	gossipv1 "github.com/warmpath/warmpath/proto/warmpath/gossip/v1"
)

const (
	// version is what this program's messages say of themselves.
	version = 1
	// maxMessage is the largest message that is read, in bytes. Those of this version
	// are smaller than a datagram of 1400; the rest is for fields of later ones.
	maxMessage = 16 << 10
	// perMessage and levelsPerMessage are how much a message of endpoints, or one of
	// placements, has at most: with the largest numbers that there are, 26 bytes an
	// endpoint, it fits into a datagram of 1400.
	perMessage, levelsPerMessage = 48, 120
)

// encode returns the message as it is sent.
func encode(m merge.Message, sent time.Duration) ([]byte, error) {
	state := &gossipv1.State{
		Version: version, Router: m.Router, Sequence: m.Sequence, SentMicros: uint64(sent.Microseconds()),
		Endpoints: make([]*gossipv1.Endpoint, len(m.Endpoints)), Leaving: m.Leaving,
	}
	for i, e := range m.Endpoints {
		state.Endpoints[i] = &gossipv1.Endpoint{
			Key: e.Key, Outstanding: uint32(min(max(e.Outstanding, 0), merge.MaxOutstanding)), GivenMicros: uint64(max(e.Given, 0)),
		}
	}
	for _, p := range m.Placements {
		state.Placements = append(state.Placements, &gossipv1.Placement{Key: p.Key, Levels: p.Levels})
	}
	return proto.Marshal(state)
}

// decode reads a message of any version. Its size is checked before it is read,
// since reading takes memory: several times what the message has.
func decode(data []byte) (merge.Message, error) {
	if len(data) > maxMessage {
		return merge.Message{}, fmt.Errorf("read a gossip message: %d bytes, want at most %d", len(data), maxMessage)
	}
	var state gossipv1.State
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &state); err != nil {
		return merge.Message{}, fmt.Errorf("read a gossip message of %d bytes: %w", len(data), err)
	}
	switch n := len(state.Endpoints); {
	case n > merge.MaxEndpoints:
		return merge.Message{}, fmt.Errorf("read a gossip message: %d endpoints, want at most %d", n, merge.MaxEndpoints)
	case state.Router == 0:
		return merge.Message{}, fmt.Errorf("read a gossip message of %d bytes: router 0, want another number", len(data))
	}
	m := merge.Message{Router: state.Router, Sequence: state.Sequence, Leaving: state.Leaving, Endpoints: make([]merge.Endpoint, len(state.Endpoints))}
	for i, e := range state.Endpoints {
		m.Endpoints[i] = merge.Endpoint{
			Key: e.Key, Outstanding: min(int64(e.Outstanding), merge.MaxOutstanding), Given: int64(min(e.GivenMicros, 1<<62)),
		}
	}
	levels := 0
	for _, p := range state.Placements {
		if levels += len(p.Levels); levels > merge.MaxLevels {
			return merge.Message{}, fmt.Errorf("read a gossip message: %d levels or more, want at most %d", levels, merge.MaxLevels)
		}
		m.Placements = append(m.Placements, merge.Placement{Key: p.Key, Levels: p.Levels})
	}
	return m, nil
}
