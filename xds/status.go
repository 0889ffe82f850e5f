package xds

// Observer is told what happens. Its functions may be nil; they are called in a
// stream's goroutine and must not block.
type Observer struct {
	// OnConnect and OnDisconnect get the node id of an Envoy.
	OnConnect, OnDisconnect func(node string)
	// OnAck is called when an Envoy uses the endpoints of a pool's generation.
	OnAck func(node string, generation uint64)
	// OnSpared is called when an Envoy comes that has the cluster of a pool without
	// members here: it keeps what it has of it.
	OnSpared func(cluster string)
	// OnNack is called when an Envoy refuses a resource; detail is its own text.
	OnNack func(Nack)
}

// Nack is an Envoy's refusal.
type Nack struct {
	Node    string `json:"node"`
	TypeURL string `json:"type"`
	Detail  string `json:"detail"` // at most 2 KiB of Envoy's message
}

// Status is a picture of the connected Envoys as to one pool.
type Status struct {
	// Generation is the one last published; 0 before the first.
	Generation uint64 `json:"generation"`
	// Clients are sorted by node id.
	Clients []Client `json:"envoys"`
	// Nacks counts the refusals since the start, LastNack is the latest.
	Nacks    uint64 `json:"nacks"`
	LastNack Nack   `json:"lastNack"`
}

// Client is one connected Envoy.
type Client struct {
	Node string `json:"node"`
	// Subscribed is set once it has asked for the pool's endpoints.
	Subscribed bool `json:"subscribed"`
	// Acked is the generation that it uses, 0 for none that is remembered.
	Acked uint64 `json:"acked"`
	// Refused is the latest generation that it refused, 0 for none.
	Refused uint64 `json:"refused"`
}
