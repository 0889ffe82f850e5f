package affinity

// MaxLevels is how many levels of a key are looked at: 128 Ki characters. What
// lies behind is served where its beginning is.
const MaxLevels = 512

// NextLevel returns the level to look at after level n, the first being 1. All
// of the first 16 are looked at, then ever fewer: what a prompt shares with
// others is then known within an eighth of its length.
func NextLevel(n int) int {
	step := 1
	for n >= 16*step {
		step *= 2
	}
	return (n/step + 1) * step
}
