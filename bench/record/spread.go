package record

import (
	"fmt"
	"slices"
)

// Spread is the median of several rounds, and their range.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf returns the spread of the values, all 0 of none. Of an even number the
// median is the mean of the two in the middle.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// String is the median with the range, without decimals.
func (s Spread) String() string { return s.Text("%.0f") }

// Text is the median with the range, each by a format of package fmt.
func (s Spread) Text(format string) string {
	return fmt.Sprintf(format+" ("+format+".."+format+")", s.Median, s.Min, s.Max)
}
