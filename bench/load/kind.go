package load

import (
	"encoding/json"
	"fmt"
	"strings"
)

// API is one of the request formats that can be sent.
type API string

// The request formats.
const (
	Chat        API = "chat"        // POST /v1/chat/completions
	Completions API = "completions" // POST /v1/completions
	Invoke      API = "invoke"      // POST /invocations, SageMaker's raw API, with {"inputs": ...}
)

// Kind is how prompts are put into requests. The zero value of every field but
// API is a request that a client may send.
type Kind struct {
	API API `json:"api"`
	// Model is named in the body, except in that of Invoke.
	Model string `json:"model,omitempty"`
	// ModelLast puts everything but the prompt behind it, as some clients do. A
	// router has to read to the end of the body then.
	ModelLast bool `json:"model_last,omitempty"`
	// Stream asks for server-sent events, with the usage in the last.
	Stream bool `json:"stream,omitempty"`
	// OutputTokens is the answer's length; 0 leaves it to the model.
	OutputTokens int `json:"output_tokens,omitempty"`
}

// Request is ready to be sent: its body is not built while time is measured.
// Requests may share bodies, and nobody changes them.
type Request struct {
	// Prefix numbers the group of requests with the same beginning, from 0.
	Prefix int
	// Path is that of the URL.
	Path string
	// Tenant is sent as X-Amzn-SageMaker-Prefix-Aware-Id unless it is empty.
	Tenant string
	// Stream is set when the answer comes as server-sent events.
	Stream bool
	Body   []byte
}

// tenantHeader names the tenant of a request to SageMaker and to warmpath.
const tenantHeader = "X-Amzn-Sagemaker-Prefix-Aware-Id"

// paths are where the formats are served.
var paths = map[API]string{Chat: "/v1/chat/completions", Completions: "/v1/completions", Invoke: "/invocations"}

// Request puts a prompt into a request.
func (k Kind) Request(p Prompt) (Request, error) {
	path, ok := paths[k.API]
	if !ok {
		return Request{}, fmt.Errorf("request of API %q: want %s, %s or %s", k.API, Chat, Completions, Invoke)
	}
	prompt, err := k.prompt(p)
	if err != nil {
		return Request{}, fmt.Errorf("request of API %s: %w", k.API, err)
	}
	members := k.others()
	if k.ModelLast {
		members = append([]string{prompt}, members...)
	} else {
		members = append(members, prompt)
	}
	body := make([]byte, 0, len(prompt)+256)
	body = append(body, '{')
	body = append(body, strings.Join(members, ",")...)
	body = append(body, '}')
	return Request{Prefix: p.Prefix, Path: path, Tenant: p.Tenant, Stream: k.Stream, Body: body}, nil
}

// Requests puts every prompt into a request.
func (k Kind) Requests(prompts []Prompt) ([]Request, error) {
	requests := make([]Request, len(prompts))
	for i, p := range prompts {
		var err error
		if requests[i], err = k.Request(p); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

// prompt is the member of the body that holds the text.
func (k Kind) prompt(p Prompt) (string, error) {
	var value any = p.Messages
	name := "messages"
	switch k.API {
	case Completions:
		name, value = "prompt", p.text()
	case Invoke:
		name, value = "inputs", p.text()
	}
	text, err := json.Marshal(value)
	return `"` + name + `":` + string(text), err
}

// others are the members of the body without the prompt.
func (k Kind) others() []string {
	var members []string
	if k.Model != "" && k.API != Invoke {
		model, _ := json.Marshal(k.Model) // a string always has a JSON form
		members = append(members, `"model":`+string(model))
	}
	switch {
	case k.OutputTokens == 0:
	case k.API == Invoke:
		members = append(members, fmt.Sprintf(`"parameters":{"max_new_tokens":%d}`, k.OutputTokens))
	default:
		members = append(members, fmt.Sprintf(`"max_tokens":%d`, k.OutputTokens))
	}
	if k.Stream {
		members = append(members, `"stream":true`)
		if k.API != Invoke {
			members = append(members, `"stream_options":{"include_usage":true}`)
		}
	}
	return members
}

// Sized returns n requests whose bodies are of exactly so many bytes, each with
// a beginning and a tenant of its own.
func (k Kind) Sized(bytes, n int, seed uint64) ([]Request, error) {
	empty, err := k.Request(Prompt{Messages: []Message{{Role: "user"}}})
	if err != nil {
		return nil, err
	}
	chars := bytes - len(empty.Body)
	if chars < minChars {
		return nil, fmt.Errorf("request of %d bytes: want %d or more for API %s", bytes, len(empty.Body)+minChars, k.API)
	}
	random := newRandom(seed)
	requests := make([]Request, n)
	for i := range requests {
		text := randomText(random, fmt.Sprintf("Manual %d.", i), chars)
		p := Prompt{Prefix: i, Tenant: fmt.Sprintf("tenant-%d", i), Messages: []Message{{Role: "user", Content: text}}}
		if requests[i], err = k.Request(p); err != nil {
			return nil, err
		}
	}
	return requests, nil
}
