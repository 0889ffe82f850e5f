// Package gossip lets several warmpath processes tell each other what they have
// running at the endpoints, so that a bound holds for all of them together.
//
// Membership is hashicorp/memberlist's: who there is, who has left or died. The
// counts go straight from each process to each other one, as datagrams: what has
// changed 20 times a second, everything that is not idle once a second. Nothing
// waits for an answer, and a process that hears nobody goes on as if it were alone.
package gossip
