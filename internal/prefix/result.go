package prefix

// Kind says what a key was made from.
type Kind uint8

// The kinds of a [Result].
const (
	// None: the request has no prefix, and Key means nothing.
	None Kind = iota
	// Text: the key covers canonical text, counted in characters (code points).
	Text
	// Raw: the key covers the body's first bytes.
	Raw
)

// String returns the name that metrics and explanations use.
func (k Kind) String() string {
	switch k {
	case Text:
		return "text"
	case Raw:
		return "raw"
	}
	return "none"
}

// Source says where a tenant or a model was found.
type Source uint8

// The sources of a tenant (header, prompt_cache_key) and of a model (body, path).
const (
	SourceNone Source = iota
	SourceHeader
	SourcePromptCacheKey
	SourceBody
	SourcePath
)

var sourceNames = [...]string{
	SourceNone: "none", SourceHeader: "header", SourcePromptCacheKey: "prompt_cache_key",
	SourceBody: "body", SourcePath: "path",
}

// String returns the name that explanations use.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return sourceNames[SourceNone]
}

// Notes is a set of remarks about how a body was read, for counting.
type Notes uint16

// The remarks. None of them is an error of the request.
const (
	// NoteRawFallback: a JSON body was expected, but this was none.
	NoteRawFallback Notes = 1 << iota
	// NoteCut: the body was cut off before its end; fields behind the cut are absent.
	NoteCut
	// NoteInflateCut: decompression stopped at the bound, as if the body were cut there.
	NoteInflateCut
	// NoteGzipBad: the body claims to be gzip and is not.
	NoteGzipBad
	// NoteEncoding: the body has a content encoding that is not read.
	NoteEncoding
	// NoteDepth: something nested deeper than MaxDepth was not looked into.
	NoteDepth
	// NoteTenantInvalid: a tenant was given, but is not a valid one.
	NoteTenantInvalid
	// NoteLongName: a model, adapter or cache salt was longer than MaxName.
	NoteLongName

	numNotes = iota
)

var noteNames = [numNotes]string{
	"raw_fallback", "cut", "inflate_cut", "gzip_bad", "encoding", "depth", "tenant_invalid", "long_name",
}

// Has reports whether all the given remarks were made.
func (n Notes) Has(want Notes) bool { return n&want == want }

// All yields the name of each remark that was made.
func (n Notes) All(yield func(name string) bool) {
	for i, name := range noteNames {
		if n&(1<<i) != 0 && !yield(name) {
			return
		}
	}
}

// Result is what a request begins with.
type Result struct {
	API  API
	Kind Kind
	// Key covers the first Chars characters together with tenant, salt, model
	// and adapter. It is valid unless Kind is None.
	Key uint64
	// Levels are the chained keys of the full runs of LevelChars characters
	// among the first Chars: Levels[i] covers (i+1)*LevelChars of them. The slice
	// belongs to the scanner and is valid until that is used again.
	Levels []uint64
	// Chars is the number of characters (bytes if Kind is Raw) that the key
	// covers: the prefix length, or fewer if there were no more.
	Chars int

	// Tenant isolates: 1..64 printable ASCII characters, the first not a
	// space, or "".
	Tenant       string
	TenantSource Source
	// Model, Adapter and CacheSalt are at most MaxName bytes; of a longer name
	// the beginning is kept, followed by '#' and a hash of the whole.
	Model       string
	ModelSource Source
	Adapter     string
	CacheSalt   string

	Notes Notes
}
