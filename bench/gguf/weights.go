package gguf

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// The types of tensors: 32-bit numbers for the norms, and Q8_0 for the rest, blocks
// of 32 weights with a common scale in 16 bits.
const (
	kindF32  = 0
	kindQ8   = 8
	fileQ8   = 7 // general.file_type of a file that is mostly Q8_0
	blockLen = 2 + blockWeights

	blockWeights = 32
)

// The scales, as 16-bit numbers. Weights are whole numbers of -127 to 127, so that they
// spread about as 1/√width with 2^-11. With 2^-7 the output's rows are far from that of
// nothing, whose tokens a sampler should never take.
const (
	innerScale  = (15 - 11) << 10
	outputScale = (15 - 7) << 10
)

// tensor is a matrix of weights, or a vector of ones if it has one dimension.
type tensor struct {
	name  string
	shape []int
	scale uint16
	// zeroRow says which rows are all 0; nil is none.
	zeroRow func(row int) bool
}

func (t tensor) kind() uint32 {
	if len(t.shape) == 1 {
		return kindF32
	}
	return kindQ8
}

// size is that of the data in bytes.
func (t tensor) size() int {
	if t.kind() == kindF32 {
		return 4 * t.shape[0]
	}
	return t.shape[0] * t.shape[1] / blockWeights * blockLen
}

// weights makes the data of tensors, one after the other.
type weights struct{ random *rand.Rand }

func newWeights(seed uint64) *weights { return &weights{rand.New(rand.NewPCG(seed, 0))} }

func (w *weights) of(t tensor) []byte {
	data := make([]byte, 0, t.size())
	if t.kind() == kindF32 {
		for range t.shape[0] {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(1))
		}
		return data
	}
	for row := range t.shape[1] {
		zero := t.zeroRow != nil && t.zeroRow(row)
		for range t.shape[0] / blockWeights {
			data = binary.LittleEndian.AppendUint16(data, t.scale)
			data = w.appendBlock(data, zero)
		}
	}
	return data
}

// appendBlock appends the weights of a block, eight of a random number.
func (w *weights) appendBlock(data []byte, zero bool) []byte {
	if zero {
		return append(data, make([]byte, blockWeights)...)
	}
	for range blockWeights / 8 {
		for bits, i := w.random.Uint64(), 0; i < 8; i, bits = i+1, bits>>8 {
			data = append(data, byte(max(int8(bits), -math.MaxInt8)))
		}
	}
	return data
}
