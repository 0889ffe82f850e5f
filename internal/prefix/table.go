package prefix

// view says what a value means at its place in the document.
type view uint8

const (
	// viewSkip: nothing; only its end is looked for.
	viewSkip view = iota
	// viewHash: nothing but its digest.
	viewHash
	// viewField: a string that is kept, or a list whose first string is.
	viewField
	// viewType: the type of a part or an item.
	viewType
	// viewText: text, if it is a string.
	viewText
	// viewContent: text, a part or a list of both.
	viewContent
	// viewMessages: a list of messages, or one.
	viewMessages
	// viewMessage: an object whose content counts.
	viewMessage
	// viewItems: text, or a list of items of the responses API.
	viewItems
	// viewItem: a message, or the output of a tool.
	viewItem
	// viewPrompt: text, or a list of which the first element decides: text,
	// a part, a list of token ids, or an id that begins such a list.
	viewPrompt
	// viewPromptList: the first element of such a list.
	viewPromptList
	// viewIDs: token ids behind the first.
	viewIDs
	// viewMedia: images beside the text; a marker, unless there are none.
	viewMedia
	// viewParameters: TGI's object that may name an adapter.
	viewParameters
)

// textMember is a member of the root object that holds text.
type textMember struct {
	name string
	// slot is its place in the canonical text.
	slot int
	view view
}

// numSlots is the largest number of text members of an API.
const numSlots = 8

// textMembers has the members that hold text by API, in the order in which
// their texts are joined, whatever the order in the body.
var textMembers = [numAPIs][]textMember{
	Chat:        {{"messages", 0, viewMessages}},
	Completions: {{"prompt", 0, viewPrompt}},
	Responses:   {{"instructions", 0, viewContent}, {"input", 1, viewItems}},
	Messages:    {{"system", 0, viewContent}, {"messages", 1, viewMessages}},
	Embeddings: {
		{"input", 0, viewPrompt},
		{"inputs", 1, viewPrompt},
		{"texts", 2, viewPrompt},
		{"prompt", 3, viewPrompt},
		{"text", 4, viewPrompt},
		{"content", 5, viewPrompt},
		{"messages", 6, viewMessages},
	},
	Rerank: {{"query", 0, viewPrompt}},
	Score:  {{"text_1", 0, viewPrompt}, {"queries", 1, viewPrompt}, {"query", 2, viewPrompt}, {"data_1", 3, viewPrompt}},
	Generate: {
		{"image_data", 0, viewMedia},
		{"text", 1, viewPrompt},
		{"input_ids", 2, viewPrompt},
		{"inputs", 3, viewPrompt},
		{"text_input", 4, viewPrompt},
		{"prompt", 5, viewPrompt},
		{"token_ids", 6, viewPrompt},
	},
	Tokenize: {{"messages", 0, viewMessages}, {"prompt", 1, viewPrompt}, {"content", 2, viewPrompt}, {"text", 3, viewPrompt}},
	Converse: {{"system", 0, viewContent}, {"messages", 1, viewMessages}},
	OllamaChat: {
		{"messages", 0, viewMessages},
	},
	OllamaGenerate: {{"system", 0, viewContent}, {"images", 1, viewMedia}, {"prompt", 2, viewPrompt}},
	Gemini: {
		{"systemInstruction", 0, viewMessage}, {"system_instruction", 1, viewMessage}, {"contents", 2, viewMessages},
	},
}

// billingHeader begins a first system block that changes with every request
// and that model servers strip before they tokenize.
const billingHeader = "x-anthropic-billing-header:"

// The fields of the root object that are kept.
const (
	fieldModel = iota
	fieldTenant
	fieldSalt
	fieldLora
	fieldAdapter
	numFields
)

// rootField returns which field of the root object a member is, or -1.
func rootField(name []byte) int {
	switch string(name) {
	case "model":
		return fieldModel
	case "prompt_cache_key":
		return fieldTenant
	case "cache_salt":
		return fieldSalt
	case "lora_path":
		return fieldLora
	case "adapter_id":
		return fieldAdapter
	}
	return -1
}

// partRole says what the type of a part makes of it.
type partRole uint8

const (
	partMarker partRole = iota
	partText
	partRefusal
	partResult
	partSilent
)

// roleOf returns the role of a part with a type.
func roleOf(typ []byte) partRole {
	switch string(typ) {
	case "text", "input_text", "output_text":
		return partText
	case "refusal":
		return partRefusal
	case "tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "tool-call", "function_call",
		"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text":
		return partSilent
	}
	if hasSuffix(typ, "tool_result") {
		return partResult
	}
	return partMarker
}

// silentMember tells the parts without a type that are calls or reasoning, by
// their only member (Bedrock, Gemini).
func silentMember(name []byte) bool {
	switch string(name) {
	case "toolUse", "reasoningContent", "cachePoint", "functionCall":
		return true
	}
	return false
}

func hasSuffix(b []byte, suffix string) bool {
	return len(b) >= len(suffix) && string(b[len(b)-len(suffix):]) == suffix
}
