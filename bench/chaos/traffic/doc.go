// Package traffic sends mixed LLM requests through a gateway and knows of each
// what was sent and what came back: short calls, streams of seconds, large bodies
// at once and in slow parts, with and without a length, over HTTP/1.1 and HTTP/2.
//
// Package load measures how fast a gateway is; this one finds out whether it loses
// or alters anything. Every answer is read to its end and compared with what the
// replicas of package replica would have said.
package traffic
