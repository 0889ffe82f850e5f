// Package extproc is the Envoy side of warmpath: an External Processing
// (ext_proc) gRPC server that reads a request's beginning, has an endpoint
// chosen for it, and tells Envoy where to send it.
//
// One gRPC stream is one request. Envoy sends on it, in this order:
//
//	request_headers   decide here if no body is needed, else wait for it
//	request_body      decide on the text; one message in the shipped mode
//	response_headers  learn which endpoint really served
//	(end of stream)   the response's last byte has passed, or the client left
//
// What Envoy must be configured to send is in envoy/bootstrap.yaml. The setting
// that carries everything is response_trailer_mode: SEND. It keeps the stream
// open until the response ends, at no cost per token, so the life of a request
// is the life of its stream: a slot is taken when an endpoint is chosen and
// given back when the stream ends, on whatever path it ends.
//
// A routing problem is never a request failure. Every problem maps to an action
// in one table (problem.go), and none of the actions is an error.
package extproc
