// Package telemetry prints what happens to requests: Prometheus metrics, an
// OpenTelemetry span for each decision, and the log's settings. It sees lengths,
// hashes and names, never a prompt's text.
package telemetry
