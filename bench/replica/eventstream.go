package replica

import (
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"strings"
)

// eventStreamType is the encoding of InvokeEndpointWithResponseStream.
const eventStreamType = "application/vnd.amazon.eventstream"

// eventStreamPath reports whether a request wants that encoding instead of
// plain server-sent events.
func eventStreamPath(req *http.Request) bool {
	return strings.HasSuffix(req.URL.Path, "/invocations-response-stream")
}

// payloadPart frames what a container wrote as one PayloadPart message:
// lengths of the message and of the headers, CRC of both, headers, payload, CRC
// of all (big endian, CRC-32 IEEE; smithy.io/2.0/aws/amazon-eventstream.html).
func payloadPart(payload []byte) []byte {
	const prelude, trailer = 12, 4
	var headers []byte
	for _, h := range [][2]string{
		{":message-type", "event"},
		{":event-type", "PayloadPart"},
		{":content-type", "application/octet-stream"},
	} {
		headers = appendStringHeader(headers, h[0], h[1])
	}
	m := make([]byte, 0, prelude+len(headers)+len(payload)+trailer)
	m = binary.BigEndian.AppendUint32(m, uint32(prelude+len(headers)+len(payload)+trailer))
	m = binary.BigEndian.AppendUint32(m, uint32(len(headers)))
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
	m = append(m, headers...)
	m = append(m, payload...)
	return binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
}

func appendStringHeader(b []byte, name, value string) []byte {
	const stringType = 7
	b = append(b, byte(len(name)))
	b = append(b, name...)
	b = append(b, stringType)
	b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
	return append(b, value...)
}
