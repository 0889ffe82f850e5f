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
	recorded
}

// recorded are members that warmpath's own recordings have.
type recorded struct {
	// Block is the size of a block in tokens. Of a line that says it the ids may
	// be those of the prompt's beginning only.
	Block *int `json:"block_size"`
	// StandsFor is how many requests there were for this one that was recorded.
	StandsFor *int `json:"stands_for"`
	// Salt is different for hashes that cannot be compared.
	Salt string `json:"salt_id"`
}

// names are members that the generic formats may have.
type names struct {
	Session string `json:"session_id"`
	Model   string `json:"model"`
	Tenant  string `json:"tenant"`
}

func readMooncake(in *input, o Options, b builder) error {
	coarsest := 0
	salts := make(map[string]bool)
	err := in.lines(func(_ place, line []byte) error {
		var l mooncakeLine
		if err := decode(line, &l); err != nil {
			return err
		}
		size, err := l.blockTokens(o.BlockTokens)
		if err != nil {
			return err
		}
		coarsest = max(coarsest, size)
		if len(salts) < 2 {
			salts[l.Salt] = true
		}
		r, err := l.record(size, cmp.Or(o.TimeUnit, time.Millisecond))
		if err != nil {
			return err
		}
		return b.add(r)
	})
	b.granularity(coarsest)
	if len(salts) > 1 {
		b.note("recordings with different salts are in it: what their requests share with each other is not seen")
	}
	return err
}

// blockTokens is the size of the line's blocks: what it says itself, the option,
// or Mooncake's.
func (l mooncakeLine) blockTokens(option int) (int, error) {
	switch {
	case l.Block == nil:
		return cmp.Or(option, 512), nil
	case *l.Block < 1 || *l.Block > MaxBlockTokens:
		return 0, fmt.Errorf("block_size %d: want 1 to %d", *l.Block, MaxBlockTokens)
	case option != 0 && option != *l.Block:
		return 0, fmt.Errorf("block_size %d: the option says %d", *l.Block, option)
	}
	return *l.Block, nil
}

func (l mooncakeLine) record(size int, unit time.Duration) (r record, err error) {
	switch {
	case l.StandsFor != nil && (*l.StandsFor < 1 || *l.StandsFor > maxStandsFor):
		return r, fmt.Errorf("stands_for %d: want 1 to %d", *l.StandsFor, maxStandsFor)
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
	if r.standsFor = 1; l.StandsFor != nil {
		r.standsFor = *l.StandsFor
	}
	if most := (r.input + size - 1) / size; l.Block != nil && len(l.IDs) <= most {
		r.pieces = blocks(make([]piece, 0, len(l.IDs)), l.IDs, size, r.input)
		return r, nil
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
