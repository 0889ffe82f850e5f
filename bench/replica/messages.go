package replica

// messagesFormat is POST /v1/messages, the Anthropic API that vLLM serves too.
type messagesFormat struct{}

func (messagesFormat) parse(body []byte) (request, error) {
	w, err := decodeWire(body)
	if err != nil {
		return request{}, err
	}
	if len(w.Messages) == 0 {
		return request{}, missing("messages")
	}
	return w.request(renderChat(w.Tools, w.System, w.Messages)), nil
}

func (messagesFormat) plain(a answer) any {
	m := messageObject(a)
	m["content"] = []object{{"type": "text", "text": text(a.tokens)}}
	m["stop_reason"] = a.stopReason()
	m["usage"] = a.messagesUsage(a.tokens)
	return m
}

func (messagesFormat) opening(answer) []event { return nil }

func (messagesFormat) first(a answer) []event {
	return []event{
		messageEvent("message_start", object{"message": messageObject(a)}),
		messageEvent("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}}),
	}
}

func (messagesFormat) token(_ answer, i int) []event {
	return []event{messageEvent("content_block_delta", object{
		"index": 0, "delta": object{"type": "text_delta", "text": word(i)},
	})}
}

func (messagesFormat) last(a answer) []event {
	return []event{
		messageEvent("content_block_stop", object{"index": 0}),
		messageEvent("message_delta", object{
			"delta": object{"stop_reason": a.stopReason(), "stop_sequence": nil}, "usage": a.messagesUsage(a.tokens),
		}),
		messageEvent("message_stop", object{}),
	}
}

func messageEvent(name string, data object) event {
	data["type"] = name
	return event{name: name, data: data}
}

func messageObject(a answer) object {
	return object{
		"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": a.model, "content": []object{},
		"stop_reason": nil, "stop_sequence": nil, "usage": a.messagesUsage(0),
	}
}

func (a answer) stopReason() string {
	if a.limited {
		return "max_tokens"
	}
	return "end_turn"
}

// messagesUsage follows the Anthropic rule: input_tokens are those not cached.
func (a answer) messagesUsage(output int) object {
	return object{
		"input_tokens": a.promptTokens - a.cachedTokens, "cache_read_input_tokens": a.cachedTokens,
		"cache_creation_input_tokens": 0, "output_tokens": output,
	}
}
