package prefix

import (
	"strings"
	"testing"
)

func TestClassify(t *testing.T) {
	tests := []struct {
		path  string
		api   API
		model string
	}{
		{"/v1/chat/completions", Chat, ""},
		{"/v1/chat/completions/", Chat, ""},
		{"/v1//chat//completions//?a=b/c", Chat, ""},
		{"/openai/v1/chat/completions?api-version=1", Chat, ""},
		{"/endpoints/llama/openai/v1/chat/completions", Chat, ""},
		{"/openai/deployments/gpt-4o/chat/completions?api-version=2", Chat, "gpt-4o"},
		{"/openai/deployments/org%2Fm%20x/completions", Completions, "org/m x"},
		{"/openai/deployments/emb/embeddings", Embeddings, "emb"},
		{"/v1/engines/davinci/completions", Completions, "davinci"},
		{"/v1/completions", Completions, ""},
		{"/completion", Completions, ""},
		{"/v1/responses", Responses, ""},
		{"/v1/responses/input_tokens", Responses, ""},
		{"/v1/responses/resp_1/cancel", Other, ""},
		{"/v1/messages", Messages, ""},
		{"/anthropic/v1/messages/count_tokens", Messages, ""},
		{"/v1/threads/t_1/messages", Other, ""},
		{"/v1/embeddings", Embeddings, ""},
		{"/pooling", Embeddings, ""},
		{"/v2/rerank", Rerank, ""},
		{"/score", Score, ""},
		{"/generate", Generate, ""},
		{"/generate_stream", Generate, ""},
		{"/v2/models/ensemble/generate", Generate, "ensemble"},
		{"/tokenize", Tokenize, ""},
		{"/model/parts-70b/converse", Converse, "parts-70b"},
		{"/model/arn%3Aaws%3Abedrock%2Fm/converse-stream", Converse, "arn:aws:bedrock/m"},
		{"/model/bad%zzid%2/converse", Converse, "bad%zzid%2"},
		{"/model/m/invoke", Invocations, "m"},
		{"/model/m/invoke-with-response-stream", Invocations, "m"},
		{"/invoke", Other, ""},
		{"/converse", Other, ""},
		{"/invocations", Invocations, ""},
		{"/endpoints/llama-prod/invocations", Invocations, "llama-prod"},
		{"/endpoints/llama-prod/invocations-response-stream", Invocations, "llama-prod"},
		{"/api/chat", OllamaChat, ""},
		{"/ollama/api/generate", OllamaGenerate, ""},
		{"/v1beta/models/gemini-2:generateContent", Gemini, "gemini-2"},
		{"/v1beta/models/gemini-2:streamGenerateContent?alt=sse", Gemini, "gemini-2"},
		{"/v1beta/models/gemini-2:embedContent", Other, "gemini-2"},
		{"/v1/models", Other, ""},
		{"/v1/chat", Other, ""},
		{"/CHAT/Completions", Other, ""},
		{"/", Other, ""},
		{"", Other, ""},
	}
	for _, test := range tests {
		if api, model := Classify(test.path); api != test.api || model != test.model {
			t.Errorf("%q: %v %q, want %v %q", test.path, api, model, test.api, test.model)
		}
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for a := range numAPIs {
		if seen[a.String()] || a.String() == "" {
			t.Errorf("name %q of %d is empty or taken", a, a)
		}
		seen[a.String()] = true
	}
	var notes []string
	for name := range Notes(NoteGzipBad | NoteRawFallback).All {
		notes = append(notes, name)
	}
	if got := strings.Join(notes, " "); got != "raw_fallback gzip_bad" {
		t.Errorf("notes %q", got)
	}
	if got := None.String() + Text.String() + Raw.String() + SourcePromptCacheKey.String(); got != "nonetextrawprompt_cache_key" {
		t.Errorf("names %q", got)
	}
}

func TestNeedsBody(t *testing.T) {
	tests := []struct {
		path, contentType string
		want              bool
	}{
		{"/v1/chat/completions", "application/json", true},
		{"/v1/chat/completions", "Application/JSON; charset=utf-8", true},
		{"/v1/chat/completions", "application/vnd.api+json", true},
		{"/v1/chat/completions", "", true},
		{"/v1/chat/completions", "text/plain", true},
		{"/v1/chat/completions", "application/x-www-form-urlencoded", true},
		{"/v1/audio/transcriptions", "Multipart/Form-Data; boundary=x", false},
		{"/v1/files", "application/octet-stream", false},
		{"/v1/files", " Audio/wav", false},
		{"/v1/files", "image/png", false},
		{"/v1/files", "video/mp4", false},
		{"/invocations", "application/octet-stream", true},
		{"/model/m/invoke", "image/png", true},
	}
	for _, test := range tests {
		h := Head{Path: test.path, ContentType: test.contentType}
		if got := h.NeedsBody(); got != test.want {
			t.Errorf("%s %q: %v, want %v", test.path, test.contentType, got, test.want)
		}
		r, _ := readWhole(h, 1024, []byte("body that is no JSON"))
		if (r.Kind != None) != test.want {
			t.Errorf("%s %q: kind %v", test.path, test.contentType, r.Kind)
		}
	}
}
