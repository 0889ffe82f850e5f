package gguf

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a model of few bytes.
func small() Params {
	return Params{Layers: 2, Hidden: 64, FeedForward: 96, Heads: 4, KVHeads: 2, HeadWidth: 32, Context: 128, Seed: 7}
}

func written(t *testing.T, p Params) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The file is the same on every machine; another digest means that published figures
// are of another model.
func TestDigest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := WriteFile(path, Tiny()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = "4126ff49fddef6ff324034a092edc5337bdd4001e649ad16bff8700e9f6118e6"
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != want {
		t.Errorf("%d bytes with the digest %s, want %s", len(data), got, want)
	}
	other := small()
	other.Seed++
	if bytes.Equal(written(t, small()), written(t, other)) {
		t.Error("another seed makes the same file")
	}
}

// file is a model as the plainest reader sees it.
type file struct {
	t        *testing.T
	rest     []byte
	at       int
	metadata map[string]any
	tensors  map[string]found
	data     int // where it begins
}

type found struct {
	shape  []uint64
	kind   uint32
	offset uint64
}

func (f *file) next(n int) []byte {
	f.t.Helper()
	if n > len(f.rest) {
		f.t.Fatalf("the file ends at byte %d, %d more are wanted", f.at, n)
	}
	b := f.rest[:n]
	f.rest, f.at = f.rest[n:], f.at+n
	return b
}

func (f *file) u32() uint32 { return binary.LittleEndian.Uint32(f.next(4)) }
func (f *file) u64() uint64 { return binary.LittleEndian.Uint64(f.next(8)) }
func (f *file) str() string { return string(f.next(int(f.u64()))) }

// value reads one of a type, by the numbers of the format's description.
func (f *file) value(kind uint32) any {
	f.t.Helper()
	switch kind {
	case 4:
		return f.u32()
	case 5:
		return int32(f.u32())
	case 6:
		return math.Float32frombits(f.u32())
	case 7:
		return f.next(1)[0] == 1
	case 8:
		return f.str()
	case 9:
		kind, list := f.u32(), []any{}
		for range f.u64() {
			list = append(list, f.value(kind))
		}
		return list
	}
	f.t.Fatalf("type %d at byte %d", kind, f.at)
	return nil
}

func readModel(t *testing.T, data []byte) *file {
	t.Helper()
	f := &file{t: t, rest: data, metadata: make(map[string]any), tensors: make(map[string]found)}
	if magic, version := string(f.next(4)), f.u32(); magic != "GGUF" || version != 3 {
		t.Fatalf("begins with %q, version %d", magic, version)
	}
	tensors, entries := f.u64(), f.u64()
	for range entries {
		key := f.str()
		if _, twice := f.metadata[key]; twice {
			t.Errorf("%s is there twice", key)
		}
		f.metadata[key] = f.value(f.u32())
	}
	for range tensors {
		name := f.str()
		if _, twice := f.tensors[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		shape := make([]uint64, f.u32())
		for i := range shape {
			shape[i] = f.u64()
		}
		f.tensors[name] = found{shape, f.u32(), f.u64()}
	}
	f.data = f.at
	for f.data%32 != 0 {
		f.data++
	}
	return f
}

// Every tensor has its place, aligned, none in another's, and the file ends behind the
// last.
func TestStructure(t *testing.T) {
	for _, p := range []Params{small(), Tiny()} {
		data := written(t, p)
		f := readModel(t, data)
		taken := make(map[uint64]string) // of 32 bytes each
		end := uint64(0)
		for name, tensor := range f.tensors {
			size, weights := uint64(0), uint64(1)
			for _, n := range tensor.shape {
				weights *= n
			}
			switch {
			case tensor.kind == 0 && len(tensor.shape) == 1:
				size = 4 * weights
			case tensor.kind == 8 && len(tensor.shape) == 2 && tensor.shape[0]%32 == 0:
				size = weights / 32 * 34
			default:
				t.Errorf("%s: %+v", name, tensor)
			}
			if tensor.offset%32 != 0 {
				t.Errorf("%s is at %d", name, tensor.offset)
			}
			for at := tensor.offset / 32; at*32 < tensor.offset+size; at++ {
				if other, ok := taken[at]; ok {
					t.Fatalf("%s is in the place of %s", name, other)
				}
				taken[at] = name
			}
			end = max(end, tensor.offset+size)
		}
		if end = (end + 31) / 32 * 32; f.data+int(end) != len(data) || int(end/32) != len(taken) {
			t.Errorf("the data end at %d with %d parts, the file of %d bytes has them from %d", end, len(taken), len(data), f.data)
		}
		if want := 3 + 9*p.Layers; len(f.tensors) != want {
			t.Errorf("%d tensors, want %d", len(f.tensors), want)
		}
	}
}

// The shapes fit together as llama.cpp multiplies them.
func TestShapes(t *testing.T) {
	f := readModel(t, written(t, small()))
	for name, want := range map[string][]uint64{
		"token_embd.weight": {64, 257}, "output_norm.weight": {64}, "output.weight": {64, 257},
		"blk.0.attn_norm.weight": {64}, "blk.0.attn_q.weight": {64, 128}, "blk.0.attn_k.weight": {64, 64}, "blk.0.attn_v.weight": {64, 64},
		"blk.1.attn_output.weight": {128, 64}, "blk.1.ffn_norm.weight": {64}, "blk.1.ffn_gate.weight": {64, 96},
		"blk.1.ffn_up.weight": {64, 96}, "blk.1.ffn_down.weight": {96, 64},
	} {
		if got := f.tensors[name].shape; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s has the shape %v, want %v", name, got, want)
		}
	}
	for key, want := range map[string]any{
		"general.architecture": "llama", "llama.block_count": uint32(2), "llama.embedding_length": uint32(64), "llama.attention.head_count_kv": uint32(2),
		"llama.attention.key_length": uint32(32), "tokenizer.ggml.eos_token_id": uint32(256), "tokenizer.ggml.add_bos_token": false,
	} {
		if got := f.metadata[key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

// Only letters and blanks can be said, and no weight is -128, which engines do not
// expect.
func TestOutput(t *testing.T) {
	data := written(t, small())
	f := readModel(t, data)
	output := f.tensors["output.weight"]
	rows := data[f.data+int(output.offset):][:257*64/32*34]
	for token := range 257 {
		row := rows[token*68 : (token+1)*68]
		weights := append(bytes.Clone(row[2:34]), row[36:68]...)
		silent := bytes.Equal(weights, make([]byte, 64))
		if said := token < 256 && strings.ContainsRune("abcdefghijklmnopqrstuvwxyz ", rune(token)); said == silent {
			t.Errorf("token %d: said %v, all weights 0 %v", token, said, silent)
		}
		if bytes.IndexByte(weights, 0x80) >= 0 {
			t.Errorf("token %d has a weight of -128", token)
		}
		if row[0] != 0 || row[1] != 0x20 { // 2^-7 in 16 bits: 0x2000
			t.Errorf("token %d has the scale % x", token, row[:2])
		}
	}
}

// Each byte is a token of its own, in the alphabet of GPT-2.
func TestTokens(t *testing.T) {
	f := readModel(t, written(t, small()))
	tokens := f.metadata["tokenizer.ggml.tokens"].([]any)
	seen := make(map[any]int)
	for i, token := range tokens {
		if before, twice := seen[token]; twice {
			t.Errorf("%q is token %d and %d", token, before, i)
		}
		seen[token] = i
	}
	for token, want := range map[string]int{"a": 'a', "Ġ": ' ', "Ċ": '\n', "Ā": 0, "ÿ": 255, "Ń": 0xad, "<|end|>": 256} {
		if got, ok := seen[token]; !ok || got != want {
			t.Errorf("%q is token %d (%v), want %d", token, got, ok, want)
		}
	}
	if kinds := f.metadata["tokenizer.ggml.token_type"].([]any); len(tokens) != 257 || len(kinds) != 257 || kinds[255] != int32(1) || kinds[256] != int32(3) {
		t.Errorf("%d tokens, kinds %v", len(tokens), kinds)
	}
}

func TestRefusedModels(t *testing.T) {
	for _, tc := range []struct {
		change func(*Params)
		want   string
	}{
		{func(p *Params) { p.Layers = 0 }, "Layers 0"},
		{func(p *Params) { p.Hidden = 40 }, "Hidden 40: want a multiple of 32"},
		{func(p *Params) { p.FeedForward = 1 << 17 }, "up to 65536"},
		{func(p *Params) { p.HeadWidth = 16 }, "HeadWidth 16"},
		{func(p *Params) { p.KVHeads = 3 }, "4 heads: want a multiple of the 3"},
		{func(p *Params) { p.Context = -1 }, "Context -1"},
	} {
		p := small()
		tc.change(&p)
		if err := Write(new(bytes.Buffer), p); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want %q", err, tc.want)
		}
	}
	if err := WriteFile(filepath.Join(t.TempDir(), "none", "x"), small()); err == nil {
		t.Error("a file in no folder is written")
	}
	if err := Write(full{}, small()); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
