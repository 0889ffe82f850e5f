package replica_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"
)

// TestResponseStreamEncoding reads the messages back field by field and finds
// the same events as in a plain stream.
func TestResponseStreamEncoding(t *testing.T) {
	f := start(t, 1, fast)
	c := client(t, http1)
	url := "http://" + f.Addresses()[0] + "/endpoints/e/invocations"
	_, plain := post(t, c, url, `{"inputs":"x","stream":true}`)
	resp, encoded := post(t, c, url+"-response-stream", `{"inputs":"x"}`)
	if got := resp.Header.Get("content-type"); got != "application/vnd.amazon.eventstream" || resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, content type %q", resp.StatusCode, got)
	}
	var payloads strings.Builder
	messages := 0
	for rest := []byte(encoded); len(rest) > 0; messages++ {
		var headers map[string]string
		var payload []byte
		headers, payload, rest = decodeMessage(t, rest)
		if headers[":message-type"] != "event" || headers[":event-type"] != "PayloadPart" {
			t.Errorf("headers %v", headers)
		}
		payloads.Write(payload)
	}
	// The numbers of cached tokens are equal because one block is never cached.
	if payloads.String() != plain || messages != strings.Count(plain, "data: ") {
		t.Errorf("%d messages with\n%s\nwant\n%s", messages, payloads.String(), plain)
	}
}

func decodeMessage(t *testing.T, b []byte) (headers map[string]string, payload, rest []byte) {
	t.Helper()
	u32 := binary.BigEndian.Uint32
	if len(b) < 16 || uint64(len(b)) < uint64(u32(b)) {
		t.Fatalf("message of %d bytes is cut", len(b))
	}
	total, headerLen := u32(b), u32(b[4:])
	if u32(b[8:]) != crc32.ChecksumIEEE(b[:8]) || u32(b[total-4:]) != crc32.ChecksumIEEE(b[:total-4]) {
		t.Fatal("checksum is wrong")
	}
	headers = make(map[string]string)
	for r := bytes.NewBuffer(b[12 : 12+headerLen]); r.Len() > 0; {
		n, _ := r.ReadByte()
		name := string(r.Next(int(n)))
		if kind, _ := r.ReadByte(); kind != 7 {
			t.Fatalf("header %s: type %d, want a string", name, kind)
		}
		headers[name] = string(r.Next(int(binary.BigEndian.Uint16(r.Next(2)))))
	}
	return headers, b[12+headerLen : total-4], b[total:]
}
