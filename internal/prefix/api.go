package prefix

import "strings"

// API says how the body of a request is read. It follows from the path alone.
type API uint8

// The APIs that are told apart.
const (
	// Other is any path without an entry of its own: a JSON object there has no
	// prefix, anything else is read as raw bytes.
	Other API = iota
	// Chat is OpenAI chat completions.
	Chat
	// Completions is OpenAI completions and llama.cpp's /completion.
	Completions
	// Responses is OpenAI responses.
	Responses
	// Messages is Anthropic messages and its token count.
	Messages
	// Embeddings is embeddings, pooling and classification in the forms of
	// OpenAI, vLLM, TEI, Cohere and Ollama.
	Embeddings
	// Rerank is the rerank API of Cohere, Jina, vLLM and TEI.
	Rerank
	// Score is vLLM's score API.
	Score
	// Generate is the native API of SGLang, TGI and Triton.
	Generate
	// Tokenize is vLLM's and llama.cpp's tokenizer.
	Tokenize
	// Converse is Amazon Bedrock's Converse.
	Converse
	// OllamaChat is Ollama's /api/chat.
	OllamaChat
	// OllamaGenerate is Ollama's /api/generate.
	OllamaGenerate
	// Gemini is Google's generateContent.
	Gemini
	// Invocations is the native invoke API of SageMaker and Bedrock: raw bytes.
	Invocations

	numAPIs
)

var apiNames = [numAPIs]string{
	Other: "other", Chat: "chat", Completions: "completions", Responses: "responses", Messages: "messages",
	Embeddings: "embeddings", Rerank: "rerank", Score: "score", Generate: "generate", Tokenize: "tokenize",
	Converse: "converse", OllamaChat: "ollama_chat", OllamaGenerate: "ollama_generate", Gemini: "gemini",
	Invocations: "invocations",
}

// String returns the name that metrics and explanations use.
func (a API) String() string {
	if a < numAPIs {
		return apiNames[a]
	}
	return apiNames[Other]
}

// lastSegment maps the last segment of a path to its API. Paths that need more
// than that are in [Classify].
var lastSegment = map[string]API{
	"completions": Completions, "completion": Completions,
	"responses": Responses, "messages": Messages,
	"embeddings": Embeddings, "embedding": Embeddings, "embed": Embeddings, "embed_all": Embeddings,
	"embed_sparse": Embeddings, "encode": Embeddings, "pooling": Embeddings, "classify": Embeddings,
	"rerank": Rerank, "reranking": Rerank, "score": Score,
	"generate": Generate, "generate_stream": Generate, "tokenize": Tokenize,
	"converse": Converse, "converse-stream": Converse,
	"invocations": Invocations, "invocations-response-stream": Invocations,
	"invoke": Invocations, "invoke-with-response-stream": Invocations,
}

// Classify returns the API of a request path (a query is ignored) and the model
// that the path names, with its percent-encoding undone, or "". Paths are told
// by their end, so that a gateway's own prefix does not matter.
func Classify(path string) (api API, pathModel string) {
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	rest, last := cutLast(path)
	rest2, parent := cutLast(rest)
	_, grand := cutLast(rest2)
	if model, verb, ok := strings.Cut(last, ":"); ok && parent == "models" {
		return geminiVerb(verb), unescape(model)
	}
	switch {
	case parent == "chat" && last == "completions":
		return Chat, modelAfter(rest2, "deployments", "engines")
	case parent == "api" && last == "chat":
		return OllamaChat, ""
	case parent == "api" && last == "generate":
		return OllamaGenerate, ""
	case parent == "messages" && last == "count_tokens":
		return Messages, ""
	case parent == "responses" && last == "input_tokens":
		return Responses, ""
	case grand == "threads" && last == "messages":
		return Other, ""
	}
	api = lastSegment[last]
	switch {
	case grand == "model" && (api == Converse || api == Invocations),
		grand == "endpoints" && api == Invocations,
		grand == "models" && api == Generate:
		return api, unescape(parent)
	case last == "converse" || last == "converse-stream" || strings.HasPrefix(last, "invoke"):
		return Other, ""
	}
	return api, modelAfter(rest, "deployments", "engines")
}

func geminiVerb(verb string) API {
	switch verb {
	case "generateContent", "streamGenerateContent", "countTokens":
		return Gemini
	}
	return Other
}

// modelAfter returns the last segment of path if the one before it is one of
// the given collections.
func modelAfter(path string, collections ...string) string {
	rest, last := cutLast(path)
	_, parent := cutLast(rest)
	for _, c := range collections {
		if parent == c {
			return unescape(last)
		}
	}
	return ""
}

// cutLast splits a path at its last segment, ignoring empty segments.
func cutLast(path string) (rest, last string) {
	path = strings.TrimRight(path, "/")
	i := strings.LastIndexByte(path, '/')
	return path[:i+1], path[i+1:]
}

// unescape undoes percent-encoding; what is no such encoding stays as it is.
func unescape(segment string) string {
	if !strings.Contains(segment, "%") {
		return segment
	}
	b := make([]byte, 0, len(segment))
	for i := 0; i < len(segment); i++ {
		if segment[i] == '%' && i+2 < len(segment) {
			if hi, lo := hexDigit(segment[i+1]), hexDigit(segment[i+2]); hi >= 0 && lo >= 0 {
				b = append(b, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		b = append(b, segment[i])
	}
	return string(b)
}
