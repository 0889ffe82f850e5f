// Package affinity remembers the beginnings of prompts: how large a share of the
// recent requests had each of them, and which endpoints have served it. It is
// what a router can know of the fleet's caches without asking the engines.
//
// A beginning is a level of a prompt's chained key. The memory is a table of a
// fixed size in which the longest unused is forgotten; it is exact for what is
// hot, which is used all the time.
package affinity
