package engine

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// CharsPerToken is the fixed size of a token in characters. Four is the usual
// rule of thumb for English text; a real tokenizer varies.
const CharsPerToken = 4

// Prompt is a rendered prompt as the cache sees it.
type Prompt struct {
	// Tokens is the length, a started token counted as one.
	Tokens int
	// Blocks holds one hash for each full block. Each hash covers everything
	// before it, so equal hashes at i mean equal prompts up to block i's end.
	Blocks []uint64
}

// NewPrompt hashes the text in blocks of blockTokens tokens. The seed parts
// (model or adapter, cache salt) go in front of the first block: prompts with
// different seeds share nothing, as in vLLM's extra keys.
func NewPrompt(blockTokens int, text string, seed ...string) Prompt {
	parent, blockChars := seedHash(seed), blockTokens*CharsPerToken
	blocks := make([]uint64, 0, len(text)/blockChars)
	chars, start := 0, 0
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
		if chars++; chars%blockChars == 0 {
			parent = chainHash(parent, text[start:i])
			blocks = append(blocks, parent)
			start = i
		}
	}
	return Prompt{Tokens: (chars + CharsPerToken - 1) / CharsPerToken, Blocks: blocks}
}

// Tokens returns the number of tokens of a text.
func Tokens(text string) int {
	return (utf8.RuneCountInString(text) + CharsPerToken - 1) / CharsPerToken
}

func seedHash(seed []string) uint64 {
	var h uint64
	for _, s := range seed {
		h = chainHash(h, s)
	}
	return h
}

func chainHash(parent uint64, text string) uint64 {
	var d xxhash.Digest
	d.Reset()
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], parent)
	_, _ = d.Write(n[:])
	_, _ = d.WriteString(text)
	return d.Sum64()
}
