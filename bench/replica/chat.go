package replica

// chatFormat is POST /v1/chat/completions.
type chatFormat struct{}

func (chatFormat) parse(body []byte) (request, error) {
	w, err := decodeWire(body)
	if err != nil {
		return request{}, err
	}
	if len(w.Messages) == 0 {
		return request{}, missing("messages")
	}
	return w.request(renderChat(w.Tools, nil, w.Messages)), nil
}

func (chatFormat) plain(a answer) any {
	r := chatObject(a, "chat.completion", object{
		"index": 0, "message": object{"role": "assistant", "content": text(a.tokens)},
		"logprobs": nil, "finish_reason": a.finish(),
	})
	r["usage"] = a.usage()
	return r
}

func (chatFormat) opening(answer) []event { return nil }

// first is the chunk with the role: it has a content, but an empty one.
func (chatFormat) first(a answer) []event {
	return chatChunk(a, object{"role": "assistant", "content": ""}, nil)
}

func (chatFormat) token(a answer, i int) []event {
	return chatChunk(a, object{"content": word(i)}, nil)
}

func (chatFormat) last(a answer) []event {
	events := chatChunk(a, object{}, a.finish())
	if a.includeUsage {
		r := chatObject(a, "chat.completion.chunk")
		r["usage"] = a.usage()
		events = append(events, event{data: r})
	}
	return append(events, event{data: doneMark})
}

func chatChunk(a answer, delta object, finish any) []event {
	return []event{{data: chatObject(a, "chat.completion.chunk", object{
		"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish,
	})}}
}

func chatObject(a answer, kind string, choices ...object) object {
	if choices == nil {
		choices = []object{}
	}
	return object{
		"id": "chatcmpl-" + a.id, "object": kind, "created": a.created, "model": a.model, "choices": choices,
	}
}
