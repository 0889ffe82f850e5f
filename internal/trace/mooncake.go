package trace

import (
	"cmp"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// mooncakeLine is a line of Mooncake's traces (FAST '25), with what the generic
// format adds.
type mooncakeLine struct {
	Timestamp jsontext.Value `json:"timestamp"`
	Input     *int           `json:"input_length"`
	Output    *int           `json:"output_length"`
	IDs       []uint64       `json:"hash_ids"`
	names
}

// names are members that the generic formats may have.
type names struct {
	Session string `json:"session_id"`
	Model   string `json:"model"`
	Tenant  string `json:"tenant"`
}

func readMooncake(in *input, o Options, b builder) error {
	size := cmp.Or(o.BlockTokens, 512)
	b.granularity(size)
	return in.lines(func(_ place, line []byte) error {
		var l mooncakeLine
		if err := decode(line, &l); err != nil {
			return err
		}
		r, err := l.record(size, cmp.Or(o.TimeUnit, time.Millisecond))
		if err != nil {
			return err
		}
		return b.add(r)
	})
}

func (l mooncakeLine) record(size int, unit time.Duration) (r record, err error) {
	switch {
	case l.Input == nil:
		return r, missing("input_length")
	case l.Output == nil:
		return r, missing("output_length")
	case *l.Input < 0 || *l.Input > MaxTokens:
		return r, fmt.Errorf("input_length %d: want 0 to %d", *l.Input, MaxTokens)
	}
	r = record{input: *l.Input, output: *l.Output, session: l.Session, model: l.Model, tenant: l.Tenant}
	if r.at, err = timeOf("timestamp", l.Timestamp, unit); err != nil {
		return r, err
	}
	r.pieces, err = blocksOf("hash_ids", l.IDs, size, r.input)
	return r, err
}

// blocksOf returns the pieces of a prompt in blocks, of which there must be as
// many as the length says, but for a last one that is not full: a wrong size of the
// blocks would go unseen otherwise.
func blocksOf(member string, ids []uint64, size, tokens int) ([]piece, error) {
	least, most := tokens/size, (tokens+size-1)/size
	if len(ids) < least || len(ids) > most {
		return nil, fmt.Errorf("%d %s: want %d to %d for %d tokens in blocks of %d; have blocks another size?", len(ids), member, least, most, tokens, size)
	}
	return blocks(make([]piece, 0, len(ids)), ids, size, tokens), nil
}
