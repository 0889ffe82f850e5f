package route

import "slices"

// Order returns all candidates in the order of a key's homes. It is for
// explanations; deciding needs only the first few.
func (t *Table) Order(key uint64) []string {
	order := make([]int, len(t.candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case i == j:
			return 0
		case t.index.Before(key, i, j):
			return -1
		default:
			return 1
		}
	})
	addresses := make([]string, len(order))
	for rank, i := range order {
		addresses[rank] = t.candidates[i].address
	}
	return addresses
}
