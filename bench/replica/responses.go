package replica

import "encoding/json"

// responsesFormat is POST /v1/responses.
type responsesFormat struct{}

func (responsesFormat) parse(body []byte) (request, error) {
	w, err := decodeWire(body)
	if err != nil {
		return request{}, err
	}
	if !present(w.Input) {
		return request{}, missing("input")
	}
	var system json.RawMessage
	if w.Instructions != "" {
		system, _ = json.Marshal(w.Instructions) // a string always marshals
	}
	return w.request(renderChat(w.Tools, system, inputMessages(w.Input))), nil
}

// inputMessages reads an input that is a string or a list of items.
func inputMessages(input json.RawMessage) []wireMessage {
	var items []json.RawMessage
	if json.Unmarshal(input, &items) != nil {
		return []wireMessage{{Role: "user", Content: input}}
	}
	messages := make([]wireMessage, 0, len(items))
	for _, item := range items {
		var m wireMessage
		if json.Unmarshal(item, &m) != nil || !present(m.Content) {
			m.Content = item // a call or its output: the whole item is the text
		}
		messages = append(messages, m)
	}
	return messages
}

func (responsesFormat) plain(a answer) any { return responseObject(a, "completed") }

// opening is sent before generation, long before the first token.
func (responsesFormat) opening(a answer) []event {
	return []event{
		responseEvent(0, "response.created", object{"response": responseObject(a, "in_progress")}),
		responseEvent(1, "response.in_progress", object{"response": responseObject(a, "in_progress")}),
	}
}

func (responsesFormat) first(a answer) []event {
	return []event{
		responseEvent(2, "response.output_item.added", object{
			"output_index": 0, "item": outputItem(a, "in_progress"),
		}),
		responseEvent(3, "response.content_part.added", contentPosition(a, object{"part": outputText("")})),
	}
}

func (responsesFormat) token(a answer, i int) []event {
	return []event{responseEvent(4+i, "response.output_text.delta",
		contentPosition(a, object{"delta": word(i), "logprobs": []any{}}))}
}

func (responsesFormat) last(a answer) []event {
	n, whole := 4+a.tokens, text(a.tokens)
	return []event{
		responseEvent(n, "response.output_text.done", contentPosition(a, object{"text": whole, "logprobs": []any{}})),
		responseEvent(n+1, "response.content_part.done", contentPosition(a, object{"part": outputText(whole)})),
		responseEvent(n+2, "response.output_item.done", object{
			"output_index": 0, "item": outputItem(a, "completed"),
		}),
		responseEvent(n+3, "response.completed", object{"response": responseObject(a, "completed")}),
	}
}

func responseEvent(sequence int, name string, data object) event {
	data["type"] = name
	data["sequence_number"] = sequence
	return event{name: name, data: data}
}

func contentPosition(a answer, data object) object {
	data["item_id"] = "msg_" + a.id
	data["output_index"] = 0
	data["content_index"] = 0
	return data
}

func outputText(s string) object {
	return object{"type": "output_text", "text": s, "annotations": []any{}, "logprobs": []any{}}
}

func outputItem(a answer, status string) object {
	content := []object{}
	if status == "completed" {
		content = append(content, outputText(text(a.tokens)))
	}
	return object{"type": "message", "id": "msg_" + a.id, "role": "assistant", "status": status, "content": content}
}

func responseObject(a answer, status string) object {
	r := object{
		"id": "resp_" + a.id, "object": "response", "created_at": a.created, "model": a.model, "status": status,
		"output": []object{}, "tools": []any{}, "tool_choice": "auto", "parallel_tool_calls": true,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "usage": nil,
	}
	if status == "completed" {
		r["output"] = []object{outputItem(a, status)}
		r["usage"] = object{
			"input_tokens": a.promptTokens, "input_tokens_details": object{"cached_tokens": a.cachedTokens},
			"output_tokens": a.tokens, "output_tokens_details": object{"reasoning_tokens": 0},
			"total_tokens": a.promptTokens + a.tokens,
		}
	}
	return r
}
