package main

import (
	"context"
	"slices"
	"time"

	"github.com/warmpath/warmpath/bench/chaos/traffic"
	"github.com/warmpath/warmpath/bench/load"
	"github.com/warmpath/warmpath/bench/replica"
)

// replicaScenarios are those in which model servers fail.
func replicaScenarios() []scenario {
	reset := func(name string, stream bool, when string, ends ...string) traffic.Form {
		return traffic.Form{
			Name: name, API: load.Chat, Size: 2 << 10, Stream: stream, Tokens: 4, TokenTime: 50 * time.Millisecond,
			Ask: []string{"x-replica-reset", when}, Ends: ends,
		}
	}
	return []scenario{
		{name: "replica killed", lasting: true, brief: true, attempts: 3, act: killReplica, excuse: cutByFaulty},
		{name: "replica frozen", lasting: true, attempts: 3, act: faulty(replica.Fault{Kind: replica.Hang, Health: true}, 1500)},
		{name: "replica slow", lasting: true, act: faulty(replica.Fault{Kind: replica.Slow, Factor: 200, Health: true}, 2000)},
		{name: "replica resets connections", lasting: true, attempts: 3, act: faulty(replica.Fault{Kind: replica.Reset, Health: true}, 1500), excuse: notRetried},
		{name: "replica answers 503", lasting: true, act: faulty(replica.Fault{Kind: replica.Unavailable, Health: true}, 1500), excuse: unavailable},
		{
			name: "resets before and in the response", lasting: true, attempts: 3, act: calm,
			clients: []traffic.Group{{Clients: 2, Rate: 8, Forms: []traffic.Form{
				// The two other choices of the decision are tried too.
				reset("reset before", false, "before", "503"),
				reset("reset before a stream", true, "before", "503"),
				// 502 when it breaks off while warmpath has the response's headers.
				reset("reset in the answer", false, "mid", traffic.Cut, "502"),
				reset("reset in the stream", true, "mid", traffic.Cut, "502"),
			}}},
		},
		{name: "clients leave", lasting: true, act: calm, clients: []traffic.Group{{Clients: 3, Rate: 12, Forms: leaving()}}},
	}
}

// calm does nothing: the clients of the scenario do.
func calm(ctx context.Context, r *round) error { return r.more(ctx, 150) }

// leaving are clients that leave in each phase of a request.
func leaving() []traffic.Form {
	const short = 150 * time.Millisecond
	large := traffic.Form{API: load.Chat, Parts: 8, Ask: traffic.Teapot(), Patience: short, Ends: []string{traffic.Left}}
	small := traffic.Form{API: load.Chat, Size: 2 << 10, Tokens: 20, TokenTime: 500 * time.Millisecond, Patience: short, Ends: []string{traffic.Left}}
	upload, unsized, headers, stream := large, large, small, small
	upload.Name, upload.Size = "leaves in the upload", 1<<20
	unsized.Name, unsized.Size, unsized.Unsized = "leaves in the unsized upload", 256<<10, true
	headers.Name = "leaves before the headers"
	stream.Name, stream.Stream, stream.Patience = "leaves in the stream", true, 400*time.Millisecond
	return []traffic.Form{upload, headers, unsized, stream}
}

// victim is another replica in each round.
func (r *round) victim() string {
	address := r.stack.Replicas.Addresses()[r.number%replicas]
	r.faulty = append(r.faulty, address)
	return address
}

// killReplica ends a replica's process, as it looks from outside, and starts it
// again.
func killReplica(ctx context.Context, r *round) error {
	address := r.victim()
	return inOrder(
		func() error { return r.underway(ctx) },
		func() error { return r.stack.Replicas.Stop(address) },
		func() error { return r.more(ctx, 120) },
		func() error { return r.stack.Replicas.Restart(address) },
		func() error { return r.whole(ctx) },
	)
}

// cutByFaulty excuses responses that a killed replica had begun.
func cutByFaulty(r *round, q *traffic.Sent) string {
	switch {
	case q.Outcome == traffic.Cut && slices.Contains(r.faulty, q.Replica):
		return "its response had begun when the replica was killed"
	case q.Status == 502 && r.reached(q, r.faulty):
		return "the replica was killed while warmpath had its response's headers"
	}
	return notRetried(r, q)
}

// notRetried excuses requests that Envoy sent to a faulty replica by its own choice,
// because warmpath was too slow: only what warmpath has decided is retried.
func notRetried(r *round, q *traffic.Sent) string {
	if q.Status == 503 && len(q.Choices) == 0 && r.reached(q, r.faulty) {
		return "sent to the replica by Envoy's own choice, and so without retries"
	}
	return ""
}

// reached reports whether one of the replicas had the request.
func (r *round) reached(q *traffic.Sent, addresses []string) bool {
	return slices.ContainsFunc(addresses, func(a string) bool {
		return slices.ContainsFunc(r.stack.Replicas.Replica(a).Requests(), func(got replica.Record) bool { return got.RequestID == q.ID })
	})
}

// faulty lets a replica have a fault for some milliseconds.
func faulty(f replica.Fault, milliseconds int) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		one := r.stack.Replicas.Replica(r.victim())
		return inOrder(
			func() error { return r.underway(ctx) },
			func() error { return one.SetFault(f) },
			func() error { return r.pause(ctx, time.Duration(milliseconds)*time.Millisecond) },
			func() error { return one.SetFault(replica.Fault{}) },
			func() error { return r.whole(ctx) },
		)
	}
}

// unavailable excuses the answers that a replica gave itself: warmpath does not
// repeat what a model server has answered.
func unavailable(r *round, q *traffic.Sent) string {
	if q.Status == 503 && slices.Contains(r.faulty, q.Replica) {
		return "the replica's own answer"
	}
	return ""
}
