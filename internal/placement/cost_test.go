package placement

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The cost of a draw is finite at both ends, and falls with the draw and the weight
// as the logarithm does.
func TestCostAtTheEnds(t *testing.T) {
	const least = 54 * math.Ln2 // -ln(0.5/2^53)
	for _, c := range []struct {
		u      uint64
		weight float64
		want   float64
	}{
		{0, 1, least},
		{0, 4, least / 4},
		{1<<11 - 1, 1, least}, // the low bits are not looked at
		{1 << 11, 1, -math.Log(1.5 / (1 << 53))},
		{1 << 63, 1, math.Ln2},
		{1 << 63, 2, math.Ln2 / 2},
		{math.MaxUint64, 1, 0}, // rounded to one
	} {
		if got := cost(c.u, c.weight); !(math.Abs(got-c.want) <= 1e-9*c.want) {
			t.Errorf("cost of %#x at %v is %v, want %v", c.u, c.weight, got, c.want)
		}
	}
}

// The floor never exceeds the cost, but by the rounding of numbers near one, and is
// near it where winners are.
func TestCostFloorIsTight(t *testing.T) {
	check := func(t interface{ Errorf(string, ...any) }, u uint64, weight float64) {
		c, floor := cost(u, weight), costFloor(u, weight)
		if floor > c*(1+1e-12)+1e-15 {
			t.Errorf("the floor of %#x at %v is %v, the cost %v", u, weight, floor, c)
		}
		if near := c * weight; near < 0.01 && floor < c*0.99-1e-15 {
			t.Errorf("the floor of %#x at %v is %v, far below %v", u, weight, floor, c)
		}
	}
	for _, u := range []uint64{0, 1, 1 << 11, 1 << 63, math.MaxUint64, math.MaxUint64 - 1<<11} {
		check(t, u, 1)
	}
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint64().Draw(t, "draw")
		if rapid.Bool().Draw(t, "near the end") {
			u = math.MaxUint64 - u>>rapid.IntRange(7, 60).Draw(t, "shift")
		}
		check(t, u, float64(rapid.IntRange(1, 1000).Draw(t, "weight")))
	})
}
