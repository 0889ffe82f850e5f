package gossip

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/warmpath/warmpath/internal/gossip/merge"
)

var example = merge.Message{
	Router: 0x1122334455667788, Sequence: 300,
	Endpoints:  []merge.Endpoint{{Key: 1, Outstanding: 2, Given: 1500}, {Key: math.MaxUint64, Outstanding: 0, Given: 0}},
	Placements: []merge.Placement{{Key: 1, Levels: []uint64{5, 6}}},
	Leaving:    true,
}

// exampleWire is the example as version 1 wrote it.
const exampleWire = "080111887766554433221118ac0220d8362a0e090100000000000000100218dc0b2a0909ffffffffffffffff" +
	"321b0901000000000000001210050000000000000006000000000000003801"

// The bytes on the wire are pinned: other versions have to read them.
func TestWireIsPinned(t *testing.T) {
	data, err := encode(example, 7*time.Millisecond)
	if got := hex.EncodeToString(data); err != nil || got != exampleWire {
		t.Errorf("wrote %s (%v), want %s", got, err, exampleWire)
	}
	pinned, err := hex.DecodeString(exampleWire)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(pinned)
	if diff := cmp.Diff(example, got); err != nil || diff != "" {
		t.Errorf("read (%v), -want +got\n%s", err, diff)
	}
}

// A newer version's message is read without what it has more, an older one's with 0
// for what it lacks.
func TestOtherVersions(t *testing.T) {
	newer, err := encode(example, 0)
	if err != nil {
		t.Fatal(err)
	}
	newer = protowire.AppendTag(newer, 99, protowire.BytesType)
	newer = protowire.AppendBytes(newer, []byte("something new"))
	newer = protowire.AppendTag(newer, 1, protowire.VarintType) // the last of several counts
	newer = protowire.AppendVarint(newer, 2)
	if got, err := decode(newer); err != nil || cmp.Diff(example, got) != "" {
		t.Errorf("newer: %+v (%v)", got, err)
	}
	older := protowire.AppendTag(nil, 2, protowire.Fixed64Type)
	older = protowire.AppendFixed64(older, 7)
	older = protowire.AppendTag(older, 3, protowire.VarintType)
	older = protowire.AppendVarint(older, 1)
	if got, err := decode(older); err != nil || cmp.Diff(merge.Message{Router: 7, Sequence: 1, Endpoints: []merge.Endpoint{}}, got) != "" {
		t.Errorf("older: %+v (%v)", got, err)
	}
}

func TestRefusedMessages(t *testing.T) {
	many := merge.Message{Router: 1, Endpoints: make([]merge.Endpoint, merge.MaxEndpoints+1)}
	long := merge.Message{Router: 1, Placements: []merge.Placement{{Levels: make([]uint64, merge.MaxLevels+1)}}}
	for _, c := range []struct {
		what string
		data []byte
		want string
	}{
		{"too large", make([]byte, maxMessage+1), "16385 bytes, want at most 16384"},
		{"no message", []byte("what is this?"), "read a gossip message of 13 bytes"},
		{"nobody's", nil, "router 0"},
		{"too many endpoints", must(encode(many, 0)), "129 endpoints, want at most 128"},
		{"too many levels", must(encode(long, 0)), "1025 levels or more, want at most 1024"},
	} {
		if _, err := decode(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// A full message fits into a datagram that no network cuts.
func TestMessagesFitDatagrams(t *testing.T) {
	largest := merge.Endpoint{Key: math.MaxUint64, Outstanding: merge.MaxOutstanding, Given: math.MaxInt64}
	m := merge.Message{Router: math.MaxUint64, Sequence: math.MaxUint64}
	for range perMessage {
		m.Endpoints = append(m.Endpoints, largest)
	}
	if n := len(must(encode(m, math.MaxInt64))); n > 1350 {
		t.Errorf("endpoints: %d bytes", n)
	}
	m.Endpoints = nil
	for range levelsPerMessage / 4 {
		m.Placements = append(m.Placements, merge.Placement{Key: math.MaxUint64, Levels: []uint64{math.MaxUint64}})
	}
	if n := len(must(encode(m, math.MaxInt64))); n > 1350 {
		t.Errorf("placements: %d bytes", n)
	}
}

// Whatever comes is read within bounds or refused, and what is read is written and
// read again as it was.
func FuzzMessage(f *testing.F) {
	f.Add(must(encode(example, time.Second)))
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0x2a, 0}, 500))
	f.Add(bytes.Repeat([]byte{0x32, 0}, 500))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			return
		}
		levels := 0
		for _, p := range m.Placements {
			levels += len(p.Levels)
		}
		if m.Router == 0 || len(m.Endpoints) > merge.MaxEndpoints || levels > merge.MaxLevels {
			t.Fatalf("beyond the bounds: router %d, %d endpoints, %d levels", m.Router, len(m.Endpoints), levels)
		}
		p := merge.New()
		p.SetMembers([]uint64{1, 2})
		p.Hear(0, m)
		for key, n := range p.Sum(0) {
			if key != 1 && key != 2 || n < 1 || n > merge.MaxOutstanding {
				t.Fatalf("endpoint %d has %d", key, n)
			}
		}
		again, err := decode(must(encode(m, 0)))
		if diff := cmp.Diff(m, again); err != nil || diff != "" {
			t.Fatalf("not what was written (%v)\n%s", err, diff)
		}
	})
}
