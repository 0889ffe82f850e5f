// Package prefix reads the beginning of an LLM request: which text a model
// server would start to prefill, for whom (tenant, cache salt), on which weights
// (model, adapter), and the 64-bit key that stands for all of it.
//
// A [Scanner] is fed the body in whatever chunks the network made of it and
// never builds the document. The text it keeps is bounded by the prefix
// length; everything behind that is skipped at memory speed, but read to the
// object's end, because clients send "model" after "messages". How the body was
// chunked never changes the result.
//
// # Canonical text
//
// The pieces of text of a request in the order in which the model sees them,
// joined by one newline; which members hold them is in the table of each [API]
// (table.go). Of a message the content counts, if it is a string, or of its
// parts the text. Any other part (an image, a file) is a marker, which is
// written <type> and counts as that many characters, and to whose place in the
// key a digest of the part's content is added. Roles, names, tools, tool calls
// and reasoning are not text.
//
// The last of duplicate members wins, names are case-sensitive, and only
// members at their proper place count. Containers nested deeper than [MaxDepth]
// are not looked into. Members that are looked at must be well-formed JSON;
// what is skipped must only have its brackets and quotes in balance.
//
// # Key
//
// With XXH64(seed, bytes) and le64(n) for n in eight bytes, little-endian:
//
//	h(0) = XXH64(0, "warmpath/1" kind field(tenant) field(salt) field(model) field(adapter))
//	h(k) = XXH64(h(k-1), chunk k)
//
// kind is the byte 't' for text and 'r' for raw bytes; field(s) is le64(len(s))
// followed by s. Chunk k is the k-th run of [LevelChars] characters of the text
// in UTF-8 (bytes of a raw body); the last one may be shorter. In front of a
// marker's '<' stands 0xFF (which no UTF-8 text contains) and le64(digest);
// these nine bytes are hashed but not counted as characters. The key is the
// last h; the h of the full chunks are the levels. So a key of N characters, N a
// multiple of LevelChars, is level N/LevelChars of any longer key of that text.
//
// The layout, the digest (digest.go) and the canonical text are pinned by
// golden values: routers of different versions must agree on every key.
//
// The package is pure: no clock, no I/O, no goroutine.
package prefix
