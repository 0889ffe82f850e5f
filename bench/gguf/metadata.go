package gguf

// The tokens are the 256 bytes, each with its value as its number, and one that ends a
// text, which is never said.
const (
	vocabulary = 257
	endToken   = 256
)

// The kinds of tokens.
const (
	normalToken  = 1
	controlToken = 3
)

// chatTemplate puts messages into a text.
const chatTemplate = `{% for m in messages %}<{{ m.role }}>
{{ m.content }}
{% endfor %}{% if add_generation_prompt %}<assistant>
{% endif %}`

// metadata are the keys that llama.cpp asks for. Heads are not Hidden / Heads wide, so
// their widths stand there.
func (p Params) metadata() []entry {
	tokens, kinds := make([]string, vocabulary), make([]int32, vocabulary)
	for b := range 256 {
		tokens[b], kinds[b] = string(letter(byte(b))), normalToken
	}
	tokens[endToken], kinds[endToken] = "<|end|>", controlToken
	return []entry{
		{"general.architecture", text("llama")},
		{"general.name", text("random")},
		{"general.file_type", number(fileQ8)},
		{"llama.block_count", number(p.Layers)},
		{"llama.context_length", number(p.Context)},
		{"llama.embedding_length", number(p.Hidden)},
		{"llama.feed_forward_length", number(p.FeedForward)},
		{"llama.attention.head_count", number(p.Heads)},
		{"llama.attention.head_count_kv", number(p.KVHeads)},
		{"llama.attention.key_length", number(p.HeadWidth)},
		{"llama.attention.value_length", number(p.HeadWidth)},
		{"llama.attention.layer_norm_rms_epsilon", float(1e-5)},
		{"llama.rope.dimension_count", number(p.HeadWidth)},
		{"llama.rope.freq_base", float(10000)},
		{"llama.vocab_size", number(vocabulary)},
		{"tokenizer.ggml.model", text("gpt2")},
		{"tokenizer.ggml.pre", text("gpt-2")},
		{"tokenizer.ggml.tokens", texts(tokens)},
		{"tokenizer.ggml.token_type", numbers(kinds)},
		// There has to be one: of the byte 255, which no text in UTF-8 has.
		{"tokenizer.ggml.merges", texts([]string{"ÿ ÿ"})},
		{"tokenizer.ggml.bos_token_id", number(endToken)},
		{"tokenizer.ggml.eos_token_id", number(endToken)},
		{"tokenizer.ggml.add_bos_token", no()},
		{"tokenizer.chat_template", text(chatTemplate)},
	}
}

// letter is the character by which GPT-2's alphabet writes a byte: that of Latin-1 if it
// can be seen, else one of those from 256 on, in order.
func letter(b byte) rune {
	if visible(b) {
		return rune(b)
	}
	r := rune(256)
	for c := range b {
		if !visible(c) {
			r++
		}
	}
	return r
}

func visible(b byte) bool { return b >= '!' && b <= '~' || b >= 0xa1 && b != 0xad }

// neverSaid reports whether answers do not have a token.
func neverSaid(token int) bool { return token != ' ' && (token < 'a' || token > 'z') }
