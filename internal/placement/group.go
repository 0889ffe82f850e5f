package placement

// grouped is what an index has where nodes are copies on one instance: keys choose
// an instance first, then a copy on it. An instance has the weight of its copies
// together. A node that is on no instance of several is an instance of its own, with
// the order it would have without any.
type grouped struct {
	of        []int32 // the instance of each node
	instances Index
}

// instancePrefix keeps an instance's name from drawing as an address does.
const instancePrefix = "\x00instance\x00"

// group returns nil if no node is on an instance.
func group(nodes []Node) *grouped {
	g := &grouped{of: make([]int32, len(nodes))}
	var instances []Node
	known := make(map[string]int32)
	for i, n := range nodes {
		at, again := known[n.Instance]
		if n.Instance == "" || !again {
			name := n.Address
			if at = int32(len(instances)); n.Instance != "" {
				known[n.Instance], name = at, instancePrefix+n.Instance
			}
			instances = append(instances, Node{Address: name})
		}
		instances[at].Weight += n.Weight
		g.of[i] = at
	}
	if len(known) == 0 {
		return nil
	}
	g.instances = New(instances)
	return g
}

// before reports whether node i's instance comes before node j's; apart is false if
// they are on the same.
func (g *grouped) before(key uint64, i, j int) (before, apart bool) {
	a, b := g.of[i], g.of[j]
	return a != b && g.instances.Before(key, int(a), int(b)), a != b
}

// topGrouped is Top by comparison.
func (x Index) topGrouped(key uint64, homes []int) int {
	n, limit := 0, min(len(homes), maxTop)
	if limit == 0 {
		return 0
	}
	for i := range x.seeds {
		if n == limit && !x.Before(key, i, homes[n-1]) {
			continue
		}
		if n < limit {
			n++
		}
		j := n - 1
		for ; j > 0 && x.Before(key, i, homes[j-1]); j-- {
			homes[j] = homes[j-1]
		}
		homes[j] = i
	}
	return n
}
