package extproc

import (
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// codec is gRPC's own for protobuf, but that an answer that is kept is encoded
// once: encoding it was a fifteenth of a request's processor time.
type codec struct {
	encoding.CodecV2
	answers *answers
}

// Codec returns the codec for the gRPC server that serves s. Without it
// everything works and costs a little more.
func (s *Server) Codec() encoding.CodecV2 {
	return codec{CodecV2: encoding.GetCodecV2(grpcproto.Name), answers: &s.answers}
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*extprocv3.ProcessingResponse); ok {
		if wire := c.answers.encoded(m); wire != nil {
			return mem.BufferSlice{mem.SliceBuffer(wire)}, nil
		}
	}
	return c.CodecV2.Marshal(v)
}

// passEncoded are the answers that are the same for all requests.
var passEncoded = encodeAll(passResponseHeaders, streamResponseBody, passResponseBody, passRequestTrailers, passResponseTrailers)

func encodeAll(messages ...*extprocv3.ProcessingResponse) map[*extprocv3.ProcessingResponse][]byte {
	all := make(map[*extprocv3.ProcessingResponse][]byte, len(messages))
	for _, m := range messages {
		if wire, err := proto.Marshal(m); err == nil {
			all[m] = wire
		}
	}
	return all
}
