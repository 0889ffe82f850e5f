package gguf

import (
	"encoding/binary"
	"io"
	"math"
)

const (
	version   = 3
	alignment = 32 // of the data of each tensor
)

// The types of values in the metadata.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeString  = 8
	typeArray   = 9
)

// aligned is the next offset at which a tensor may begin.
func aligned(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }

// encoder writes little-endian values and keeps the first error.
type encoder struct {
	w       io.Writer
	written uint64
	err     error
}

func (e *encoder) bytes(b []byte) {
	if e.err != nil {
		return
	}
	var n int
	n, e.err = e.w.Write(b)
	e.written += uint64(n)
}

func (e *encoder) uint32(n uint32) { e.bytes(binary.LittleEndian.AppendUint32(nil, n)) }
func (e *encoder) uint64(n uint64) { e.bytes(binary.LittleEndian.AppendUint64(nil, n)) }

func (e *encoder) text(s string) {
	e.uint64(uint64(len(s)))
	e.bytes([]byte(s))
}

// align fills up to where a tensor may begin.
func (e *encoder) align() { e.bytes(make([]byte, aligned(e.written)-e.written)) }

// entry is a key of the metadata, and what writes its type and value.
type entry struct {
	key   string
	value func(*encoder)
}

func text(s string) func(*encoder) {
	return func(e *encoder) {
		e.uint32(typeString)
		e.text(s)
	}
}

func number(n int) func(*encoder) {
	return func(e *encoder) {
		e.uint32(typeUint32)
		e.uint32(uint32(n))
	}
}

func float(f float32) func(*encoder) {
	return func(e *encoder) {
		e.uint32(typeFloat32)
		e.uint32(math.Float32bits(f))
	}
}

func no() func(*encoder) {
	return func(e *encoder) {
		e.uint32(typeBool)
		e.bytes([]byte{0})
	}
}

func texts(list []string) func(*encoder) {
	return func(e *encoder) {
		e.uint32(typeArray)
		e.uint32(typeString)
		e.uint64(uint64(len(list)))
		for _, s := range list {
			e.text(s)
		}
	}
}

func numbers(list []int32) func(*encoder) {
	return func(e *encoder) {
		e.uint32(typeArray)
		e.uint32(typeInt32)
		e.uint64(uint64(len(list)))
		for _, n := range list {
			e.uint32(uint32(n))
		}
	}
}
