package config

import (
	"slices"

	"github.com/warmpath/warmpath/internal/config/strict"
	"github.com/warmpath/warmpath/internal/route"
)

// RetryCondition is a value of Envoy's x-envoy-retry-on header.
type RetryCondition string

// The conditions that may be switched on. Envoy's router filter documents them.
const (
	ConnectFailure         RetryCondition = "connect-failure"
	RefusedStream          RetryCondition = "refused-stream"
	Reset                  RetryCondition = "reset"
	ResetBeforeRequest     RetryCondition = "reset-before-request"
	HTTP3PostConnectFailed RetryCondition = "http3-post-connect-failure"
	GatewayError           RetryCondition = "gateway-error"
	EnvoyRatelimited       RetryCondition = "envoy-ratelimited"
)

// MaxAttempts bounds Retry.Attempts: a decision names no more endpoints than that
// to go on to.
const MaxAttempts = route.MaxChoices - 1

func retryConditions() []RetryCondition {
	return []RetryCondition{
		ConnectFailure, RefusedStream, Reset, ResetBeforeRequest, HTTP3PostConnectFailed, GatewayError, EnvoyRatelimited,
	}
}

// unfitForRetry says why a condition that Envoy knows is refused; empty when it
// is not one of those.
func unfitForRetry(condition string) string {
	switch condition {
	case "5xx":
		return "repeats whole generations: an engine that failed after a minute of work is asked for it again (want gateway-error for 502, 503 and 504)"
	case "retriable-4xx":
		return "repeats a request that the engine has answered"
	case "retriable-status-codes", "retriable-headers":
		return "needs a list of codes or headers that is not sent"
	case "cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable":
		return "is a condition of gRPC requests, which are not retried"
	default:
		return ""
	}
}

func (r *Retry) decode(v strict.Value) {
	v.Fields(
		strict.Field{Name: "conditions", Decode: r.decodeConditions},
		strict.Field{Name: "attempts", Decode: strict.Int(&r.Attempts, 0, MaxAttempts)},
	)
}

func (r *Retry) decodeConditions(v strict.Value) {
	conditions := []RetryCondition{}
	isList := v.Each(func(_ int, item strict.Value) {
		if s, ok := item.Word(); ok {
			if why := unfitForRetry(s); why != "" {
				item.Reject("%s", why)
				return
			}
		}
		var c RetryCondition
		strict.Enum(&c, retryConditions()...)(item)
		switch {
		case c == "":
		case slices.Contains(conditions, c):
			item.Reject("stands here twice")
		default:
			conditions = append(conditions, c)
		}
	})
	if isList {
		r.Conditions = conditions
	}
}
