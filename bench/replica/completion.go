package replica

// completionFormat is POST /v1/completions.
type completionFormat struct{}

func (completionFormat) parse(body []byte) (request, error) {
	w, err := decodeWire(body)
	if err != nil {
		return request{}, err
	}
	if !present(w.Prompt) {
		return request{}, missing("prompt")
	}
	return w.request(contentText(w.Prompt)), nil
}

func (completionFormat) plain(a answer) any {
	r := completionObject(a, completionChoice(text(a.tokens), a.finish()))
	r["usage"] = a.usage()
	return r
}

func (completionFormat) opening(answer) []event { return nil }

func (completionFormat) first(answer) []event { return nil }

// token gives the last token its finish reason too, as vLLM does here.
func (completionFormat) token(a answer, i int) []event {
	var finish any
	if i == a.tokens-1 {
		finish = a.finish()
	}
	return []event{{data: completionObject(a, completionChoice(word(i), finish))}}
}

func (completionFormat) last(a answer) []event {
	var events []event
	if a.includeUsage {
		r := completionObject(a)
		r["usage"] = a.usage()
		events = append(events, event{data: r})
	}
	return append(events, event{data: doneMark})
}

func completionChoice(text string, finish any) object {
	return object{"index": 0, "text": text, "logprobs": nil, "finish_reason": finish}
}

func completionObject(a answer, choices ...object) object {
	if choices == nil {
		choices = []object{}
	}
	return object{
		"id": "cmpl-" + a.id, "object": "text_completion", "created": a.created, "model": a.model, "choices": choices,
	}
}
