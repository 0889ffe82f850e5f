// Package xds is the control plane for Envoy: it sends the pool's cluster and
// its endpoints over one aggregated delta xDS stream (ADS).
//
// The pure half turns a [fleet.Set] into Envoy's messages ([NewCluster],
// [LoadAssignment]). The other half, [Server], keeps them in go-control-plane's
// linear caches and knows what each connected Envoy has taken.
//
// Three rules, each bought with somebody's outage:
//
//   - Nothing is answered before the first [Pool.Publish]. An Envoy that is
//     connected to a control plane with nothing to say keeps what it has; one
//     that is told "nothing" drops its whole pool.
//   - The EDS service name carries a hash of the cluster. Envoy subscribes a
//     changed cluster's endpoints anew and has it working in milliseconds; under
//     an unchanged name it would wait 15 seconds for an answer that an up-to-date
//     cache never sends. For the same reason every such name that an Envoy asks
//     for is answered, also one of the past.
//   - One slow or frozen Envoy holds up nobody: a stream has at most one answer
//     of a type under way, and the caches never wait for it to be read.
package xds
