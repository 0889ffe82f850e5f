package prefix

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// The twin reads the whole document into a tree and extracts the text by plain
// recursion. It shares no code with the scanner but the constants of the
// digest, mix, ValidTenant and the table of members.

// node is a JSON value: a string, a scalar as written, a list or an object.
type node struct {
	kind    byte // one of " 0 [ {
	str     string
	elems   []node
	members []pair
	raw     []byte
	depth   int
}

type pair struct {
	name  string
	value node
}

var errNoObject = errors.New("no object")

// parseTree reads the object that body begins with.
func parseTree(body []byte) (node, error) {
	body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return node{}, errNoObject
	}
	value, err := d.ReadValue()
	if err != nil {
		return node{}, err
	}
	return tree(value, 1)
}

func tree(value []byte, depth int) (node, error) {
	n := node{raw: bytes.Clone(value), depth: depth}
	d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	tok, err := d.ReadToken()
	if err != nil {
		return n, err
	}
	switch tok.Kind() {
	case '"':
		n.kind, n.str = '"', tok.String()
		return n, nil
	case '[', '{':
		n.kind = byte(tok.Kind())
	default:
		n.kind, n.str = '0', string(bytes.TrimSpace(value))
		return n, nil
	}
	for d.PeekKind() != ']' && d.PeekKind() != '}' {
		var name string
		if n.kind == '{' {
			tok, err := d.ReadToken()
			if err != nil {
				return n, err
			}
			name = tok.String()
		}
		v, err := d.ReadValue()
		if errors.Is(err, io.EOF) || err != nil {
			return n, err
		}
		child, err := tree(v, depth+1)
		if err != nil {
			return n, err
		}
		n.elems = append(n.elems, child)
		n.members = append(n.members, pair{name, child})
	}
	return n, nil
}

func (n node) opaque() bool   { return n.depth > MaxDepth }
func (n node) isObject() bool { return n.kind == '{' && !n.opaque() }
func (n node) isList() bool   { return n.kind == '[' && !n.opaque() }
func (n node) isString() bool { return n.kind == '"' }
func (n node) isNumber() bool {
	return n.kind == '0' && strings.ContainsAny(n.str[:1], "-0123456789")
}

// get returns the last member of a name.
func (n node) get(name string) (node, bool) {
	for _, m := range slices.Backward(n.members) {
		if n.kind == '{' && m.name == name {
			return m.value, true
		}
	}
	return node{}, false
}

// piece is a piece of text, or a marker.
type piece struct {
	text   string
	marker bool
	digest uint64
}

func stringPiece(n node) []piece {
	if n.isString() && n.str != "" {
		return []piece{{text: n.str}}
	}
	return nil
}

func twinContent(api API, n node) (out []piece) {
	switch {
	case n.isString():
		return stringPiece(n)
	case n.isObject():
		return twinPart(api, n)
	case n.isList():
		for _, e := range n.elems {
			if e.isObject() {
				out = append(out, twinPart(api, e)...)
			} else {
				out = append(out, stringPiece(e)...)
			}
		}
	}
	return out
}

func twinPart(api API, n node) []piece {
	typ, _ := n.get("type")
	if !typ.isString() || typ.str == "" {
		return twinUntyped(api, n)
	}
	switch {
	case slices.Contains([]string{"text", "input_text", "output_text"}, typ.str):
		v, _ := n.get("text")
		return stringPiece(v)
	case typ.str == "refusal":
		v, _ := n.get("refusal")
		return stringPiece(v)
	case slices.Contains([]string{
		"tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "tool-call", "function_call",
		"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text",
	}, typ.str):
		return nil
	case strings.HasSuffix(typ.str, "tool_result") && len(typ.str) <= 64:
		v, _ := n.get("content")
		return twinContent(api, v)
	}
	return []piece{{text: "<" + shorten(typ.str) + ">", marker: true, digest: twinDigest(api, n, content)}}
}

func twinUntyped(api API, n node) []piece {
	if v, ok := n.get("text"); ok {
		return stringPiece(v)
	}
	if v, ok := n.get("content"); ok {
		return twinContent(api, v)
	}
	if v, ok := n.get("toolResult"); ok {
		return twinMessage(api, v)
	}
	var names []string
	for _, m := range n.members {
		if m.name != "cache_control" && m.name != "type" {
			names = append(names, shorten(m.name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	least := slices.Min(names)
	if slices.Contains([]string{"toolUse", "reasoningContent", "cachePoint", "functionCall"}, least) {
		return nil
	}
	return []piece{{text: "<" + least + ">", marker: true, digest: twinDigest(api, n, content)}}
}

// shorten cuts a string at 64 bytes, between characters.
func shorten(s string) string {
	end := 0
	for i, r := range s {
		if i+len(string(r)) > 64 {
			break
		}
		end = i + len(string(r))
	}
	return s[:end]
}

func twinMessage(api API, n node) []piece {
	if !n.isObject() {
		return nil
	}
	var media []piece
	if v, ok := n.get("images"); ok && api == OllamaChat {
		media = twinMedia(api, v)
	}
	for _, m := range slices.Backward(n.members) {
		if m.name == "content" || api == Gemini && m.name == "parts" {
			return append(twinContent(api, m.value), media...)
		}
	}
	return media
}

func twinMedia(api API, n node) []piece {
	if n.kind == '0' && n.str == "null" || n.isString() && n.str == "" || n.isList() && len(n.elems) == 0 {
		return nil
	}
	return []piece{{text: "<images>", marker: true, digest: twinDigest(api, n, inside)}}
}

func twinItem(api API, n node) []piece {
	if !n.isObject() {
		return stringPiece(n)
	}
	typ, _ := n.get("type")
	name := ""
	switch {
	case !typ.isString() || typ.str == "" || typ.str == "message":
		name = "content"
	case len(typ.str) > 64:
		return nil
	case strings.HasSuffix(typ.str, "_output"):
		name = "output"
	case slices.Contains([]string{"text", "input_text", "output_text"}, typ.str):
		v, _ := n.get("text")
		return stringPiece(v)
	default:
		return nil
	}
	v, _ := n.get(name)
	return twinContent(api, v)
}

func twinPrompt(api API, n node, level int) []piece {
	switch {
	case n.isString():
		return stringPiece(n)
	case n.isObject():
		return twinPart(api, n)
	case !n.isList() || len(n.elems) == 0 || level == 2:
		return nil
	case n.elems[0].isNumber():
		var ids []string
		for _, e := range n.elems {
			if e.isNumber() {
				ids = append(ids, e.str)
			}
		}
		return []piece{{text: "tok:" + strings.Join(ids, ",")}}
	}
	return twinPrompt(api, n.elems[0], level+1)
}

func twinSource(api API, m textMember, n node) (out []piece) {
	switch m.view {
	case viewContent:
		out = twinContent(api, n)
	case viewPrompt:
		out = twinPrompt(api, n, 0)
	case viewMedia:
		out = twinMedia(api, n)
	case viewMessage:
		out = twinMessage(api, n)
	case viewMessages, viewItems:
		list := n.elems
		if !n.isList() {
			list = []node{n}
		}
		for _, e := range list {
			if m.view == viewItems {
				out = append(out, twinItem(api, e)...)
			} else {
				out = append(out, twinMessage(api, e)...)
			}
		}
	}
	if api == Messages && m.slot == 0 && len(out) > 0 && strings.HasPrefix(out[0].text, billingHeader) {
		return out[1:]
	}
	return out
}

// place says where in a part a value stands: what a string there may mean
// decides how much of it is digested.
type place uint8

const (
	inside  place = iota // anywhere else
	asText               // a string there is text
	content              // text, a part, or a list
	element              // text or a part
	message              // the wrapper of a tool's result
)

func twinDigest(api API, n node, at place) uint64 {
	switch {
	case n.isString():
		s := n.str
		if at == asText || at == content || at == element {
			s = s[:min(len(s), textDigestBytes)]
		}
		return mix(tagString, xxhash.Sum64String(s))
	case n.kind == '0':
		return mix(tagScalar, xxhash.Sum64String(n.str))
	case n.opaque():
		return mix(tagDeep, xxhash.Sum64(n.raw))
	case n.kind == '[':
		h, elem := tagArray, inside
		if at == content {
			elem = element
		}
		for _, e := range n.elems {
			h = mix(h, twinDigest(api, e, elem))
		}
		return h
	}
	return twinDigestObject(api, n, at)
}

func twinDigestObject(api API, n node, at place) (sum uint64) {
	var names []string
	values := map[string]uint64{}
	for _, m := range n.members {
		if m.name == "cache_control" {
			continue
		}
		d := twinDigest(api, m.value, twinPlace(api, m.name, at))
		if _, ok := values[m.name]; !ok && len(names) == maxMembers {
			sum += mix(xxhash.Sum64String(m.name), d)
			continue
		} else if !ok {
			names = append(names, m.name)
		}
		values[m.name] = d
	}
	for name, d := range values {
		sum += mix(xxhash.Sum64String(name), d)
	}
	return mix(tagObject, sum)
}

// twinPlace returns where a member's value stands, given where its object does.
func twinPlace(api API, name string, at place) place {
	switch {
	case at == message && (name == "content" || api == Gemini && name == "parts"):
		return content
	case at != content && at != element:
	case name == "text" || name == "refusal":
		return asText
	case name == "content":
		return content
	case name == "toolResult":
		return message
	}
	return inside
}

// twinResult is what the scanner must agree with.
type twinResult struct {
	kind                         Kind
	key                          uint64
	levels                       []uint64
	chars                        int
	text                         string
	tenant, model, adapter, salt string
}

// unit is a character of the canonical text with what is hashed for it.
type unit struct {
	shown  rune
	hashed []byte
}

func twinUnits(pieces []piece) (out []unit) {
	for i, p := range pieces {
		if i > 0 {
			out = append(out, unit{'\n', []byte("\n")})
		}
		for j, r := range p.text {
			u := unit{r, []byte(string(r))}
			if p.marker && j == 0 {
				u.hashed = append(binary.LittleEndian.AppendUint64([]byte{markerByte}, p.digest), u.hashed...)
			}
			out = append(out, u)
		}
	}
	return out
}

func twinChain(kind byte, r *twinResult, units []unit) {
	frame := []byte("warmpath/1" + string(kind))
	for _, f := range []string{r.tenant, r.salt, r.model, r.adapter} {
		frame = append(binary.LittleEndian.AppendUint64(frame, uint64(len(f))), f...)
	}
	r.key = xxhash.Sum64(frame)
	r.chars = len(units)
	for chunk := range slices.Chunk(units, 256) {
		d := xxhash.NewWithSeed(r.key)
		for _, u := range chunk {
			_, _ = d.Write(u.hashed)
			r.text += string(u.shown)
		}
		r.key = d.Sum64()
		if len(chunk) == 256 {
			r.levels = append(r.levels, r.key)
		}
	}
}

func twinName(n node, ok bool) string {
	switch {
	case !ok || !n.isString():
		return ""
	case len(n.str) <= MaxName:
		return n.str
	}
	end := MaxName - 17
	for !isStart(n.str[end]) {
		end--
	}
	var sum [8]byte
	binary.BigEndian.PutUint64(sum[:], xxhash.Sum64String(n.str))
	const hex = "0123456789abcdef"
	out := n.str[:end] + "#"
	for _, b := range sum {
		out += string(hex[b>>4]) + string(hex[b&15])
	}
	return out
}

func twinRead(api API, pathModel, header string, body []byte, n int) twinResult {
	var r twinResult
	if ValidTenant(header) {
		r.tenant = header
	}
	r.model = pathModel
	doc, err := parseTree(body)
	if api == Invocations || err != nil {
		return twinRaw(r, body, n)
	}
	if api == Other {
		return r
	}
	twinFields(api, &r, doc)
	var pieces []piece
	for _, m := range textMembers[api] {
		if v, ok := doc.get(m.name); ok {
			pieces = append(pieces, twinSource(api, m, v)...)
		}
	}
	if len(pieces) == 0 {
		return r
	}
	r.kind = Text
	units := twinUnits(pieces)
	twinChain('t', &r, units[:min(n, len(units))])
	return r
}

func twinRaw(r twinResult, body []byte, n int) twinResult {
	if len(body) == 0 {
		return r
	}
	r.kind = Raw
	var units []unit
	for _, b := range body[:min(n, len(body))] {
		units = append(units, unit{rune(b), []byte{b}})
	}
	twinChain('r', &r, units)
	r.text = string(body[:min(n, len(body))])
	return r
}

func twinFields(api API, r *twinResult, doc node) {
	if m := twinName(doc.get("model")); m != "" {
		r.model = m
	}
	r.salt = twinName(doc.get("cache_salt"))
	if key, ok := doc.get("prompt_cache_key"); r.tenant == "" && ok && key.isString() && ValidTenant(key.str) {
		r.tenant = key.str
	}
	lora, ok := doc.get("lora_path")
	if lora.isList() && len(lora.elems) > 0 {
		lora = lora.elems[0]
	}
	r.adapter = twinName(lora, ok)
	if r.adapter != "" {
		return
	}
	for _, m := range slices.Backward(doc.members) {
		if m.name == "adapter_id" {
			r.adapter = twinName(m.value, true)
			return
		}
		if api == Generate && m.name == "parameters" {
			if id, ok := m.value.get("adapter_id"); ok {
				r.adapter = twinName(id, true)
			}
			return
		}
	}
}
