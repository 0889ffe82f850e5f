package replica

import (
	"encoding/json"
	"mime"
	"net/http"
)

// invocationFormat returns the format of a body sent to /invocations: that of
// the API whose body it is, as in vLLM's SageMaker entry point, or the native
// one: {"inputs": ...}, or any text when the content type is not JSON.
func invocationFormat(h http.Header, body []byte) format {
	media, _, _ := mime.ParseMediaType(h.Get("content-type"))
	if media != "" && media != "application/json" && !json.Valid(body) {
		return nativeFormat{rawText: true}
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // the native format reports what is not an object
	switch {
	case present(fields["messages"]):
		return chatFormat{}
	case present(fields["prompt"]):
		return completionFormat{}
	case present(fields["input"]):
		return responsesFormat{}
	default:
		return nativeFormat{}
	}
}

// nativeFormat is the body of Hugging Face's and LMI's containers.
type nativeFormat struct{ rawText bool }

func (f nativeFormat) parse(body []byte) (request, error) {
	if f.rawText {
		return request{prompt: string(body)}, nil
	}
	w, err := decodeWire(body)
	if err != nil {
		return request{}, err
	}
	if !present(w.Inputs) {
		return request{}, missing("inputs, messages, prompt or input")
	}
	return w.request(contentText(w.Inputs)), nil
}

func (nativeFormat) plain(a answer) any {
	return object{"generated_text": text(a.tokens), "usage": a.usage()}
}

func (nativeFormat) opening(answer) []event { return nil }

func (nativeFormat) first(answer) []event { return nil }

func (nativeFormat) token(_ answer, i int) []event {
	return []event{{data: object{"token": object{"text": word(i)}}}}
}

func (f nativeFormat) last(a answer) []event { return []event{{data: f.plain(a)}} }

// embeddingFormat is POST /v1/embeddings: a prefill and one token, which is
// not sent.
type embeddingFormat struct{}

func (embeddingFormat) parse(body []byte) (request, error) {
	w, err := decodeWire(body)
	if err != nil {
		return request{}, err
	}
	if !present(w.Input) {
		return request{}, missing("input")
	}
	r := w.request(contentText(w.Input))
	r.stream, r.outputTokens = false, 1
	return r, nil
}

func (embeddingFormat) plain(a answer) any {
	return object{
		"id": "embd-" + a.id, "object": "list", "created": a.created, "model": a.model, "usage": a.usage(),
		"data": []object{{"object": "embedding", "index": 0, "embedding": []float64{0.6, 0.8}}},
	}
}

func (embeddingFormat) opening(answer) []event    { return nil }
func (embeddingFormat) first(answer) []event      { return nil }
func (embeddingFormat) token(answer, int) []event { return nil }
func (embeddingFormat) last(answer) []event       { return nil }
