package main

import (
	"bytes"
	"compress/gzip"
	"strings"

	"github.com/warmpath/warmpath/envoy"
)

// place is where a client writes something that is its own.
type place struct {
	path    string // default /v1/chat/completions
	headers []string
	body    []byte
	unsized bool
	trailer bool
	// name: what stands there is an identifier that spans carry, cut.
	name bool
	// unread: warmpath is not told of it, so it cannot be looked for there.
	unread bool
}

func zip(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// places are all places of a request, each with the secret s.
func places(s string) map[string]place {
	quoted := func(form string) []byte { return []byte(strings.ReplaceAll(form, "S", s)) }
	header := func(name, value string) place {
		return place{headers: []string{name, strings.ReplaceAll(value, "S", s)}}
	}
	plain := `{"model":"m","messages":[{"role":"user","content":"hello"}]`
	return map[string]place{
		"authorization":  header("authorization", "Bearer S"),
		"x-api-key":      header("x-api-key", "S"),
		"api-key":        header("api-key", "S"),
		"proxy":          header("proxy-authorization", "Basic S"),
		"cookie":         header("cookie", "a=b; session=S"),
		"header name":    {headers: []string{"x-" + s, "1"}},
		"user agent":     header("user-agent", "S/1.0"),
		"content type":   header("content-type", "application/json; profile=S"),
		"odd type":       header("content-type", "S/S"),
		"encoding":       header("content-encoding", "S"),
		"traceparent":    header("traceparent", "00-S-S-01"),
		"tenant":         header("x-amzn-sagemaker-prefix-aware-id", "S"),
		"bad tenant":     header("x-amzn-sagemaker-prefix-aware-id", "S S S S"),
		"steering":       {headers: []string{"x-gateway-destination-endpoint", s}, unread: true},
		"query":          {path: "/v1/chat/completions?key=" + s},
		"path":           {path: "/" + s + "/v1/chat/completions"},
		"end of path":    {path: "/v1/models/" + s},
		"invocation":     {path: "/endpoints/e/invocations", body: quoted("S S S")},
		"prompt":         {body: quoted(`{"messages":[{"content":"S S S"}]}`)},
		"long prompt":    {body: chat(strings.Repeat(s+" ", 300), s, true)},
		"prompt key":     {body: quoted(plain + `,"prompt_cache_key":"S"}`)},
		"bad prompt key": {body: quoted(plain + `,"prompt_cache_key":["S"]}`)},
		"salt":           {body: quoted(plain + `,"cache_salt":"S"}`)},
		"user":           {body: quoted(plain + `,"user":"S","metadata":{"S":"S"}}`)},
		"member":         {body: quoted(`{"S":1,"messages":[{"S":"S","content":"x"}]}`)},
		"tool":           {body: quoted(plain + `,"tools":[{"type":"function","function":{"name":"S","description":"S"}}]}`)},
		"arguments":      {body: quoted(`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"function":{"arguments":"{\"k\":\"S\"}"}}]},{"role":"tool","content":"S"}]}`)},
		"image":          {body: quoted(`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,S"}}]}]}`)},
		"broken JSON":    {body: quoted(`{"messages":[{"content":"S`)},
		"trailing bytes": {body: quoted(plain + `} S`)},
		"no JSON":        {body: quoted("S")},
		"bad escape":     {body: quoted(`{"messages":[{"content":"\qS"}]}`)},
		"bad UTF-8":      {body: quoted("{\"messages\":[{\"content\":\"\xff\xfeS\x80\"}]}")},
		"deep":           {body: quoted(`{"messages":` + strings.Repeat("[", 5000) + `"S"`)},
		"number":         {body: quoted(`{"model":12S,"messages":[{"content":"x"}]}`)},
		"zipped":         {headers: []string{"content-encoding", "gzip"}, body: zip(quoted(`{"messages":[{"content":"S"}]}`)), unread: true},
		"cut zip":        {headers: []string{"content-encoding", "gzip"}, body: append(zip(bytes.Repeat([]byte(s), 900))[:40], s...)},
		"multipart": {
			headers: []string{"content-type", "multipart/form-data; boundary=b" + s}, path: "/v1/audio/transcriptions",
			body: quoted("--bS\r\ncontent-disposition: form-data; name=\"file\"; filename=\"S.wav\"\r\n\r\nS\r\n--bS--"),
		},
		"chunked":   {body: quoted(`{"messages":[{"content":"S"}]}`), unsized: true, unread: true},
		"trailers":  {headers: []string{"x-checksum", s}, body: []byte(plain + "}"), trailer: true, unread: true},
		"too large": {body: append(quoted(`{"messages":[{"content":"S`), make([]byte, envoy.BodyLimit)...), unread: true},
		"upgrade":   {path: "/v1/realtime?" + s, headers: []string{"connection", "upgrade", "upgrade", "websocket", "sec-websocket-protocol", s}, body: []byte{}},
		"events":    {headers: []string{"x-replica-tokens", "3"}, body: chat(s, s, true)},

		"model":      {body: quoted(`{"model":"S","messages":[{"content":"x"}]}`), name: true},
		"adapter":    {body: quoted(`{"model":"m","lora_path":"S","messages":[{"content":"x"}]}`), name: true},
		"request id": {headers: []string{"x-request-id", s}, name: true},
		"tracestate": {headers: []string{"traceparent", "00-" + strings.Repeat("ab", 16) + "-" + strings.Repeat("cd", 8) + "-01", "tracestate", "v=" + s}, name: true},
	}
}
