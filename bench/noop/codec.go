package main

import (
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// codec encodes each of the constant answers once, as warmpath's does.
type codec struct {
	encoding.CodecV2
	wire map[*extprocv3.ProcessingResponse][]byte
}

func newCodec(p *processor) codec {
	c := codec{CodecV2: encoding.GetCodecV2(grpcproto.Name), wire: make(map[*extprocv3.ProcessingResponse][]byte)}
	for _, list := range [][]*extprocv3.ProcessingResponse{p.toHeaders, p.toBody, {askForBody, passResponseHeaders, passResponseTrailers}} {
		for _, m := range list {
			if wire, err := proto.Marshal(m); err == nil {
				c.wire[m] = wire
			}
		}
	}
	return c
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*extprocv3.ProcessingResponse); ok && c.wire[m] != nil {
		return mem.BufferSlice{mem.SliceBuffer(c.wire[m])}, nil
	}
	return c.CodecV2.Marshal(v)
}
