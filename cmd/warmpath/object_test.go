//go:build kubernetes || istio

package main

// object is an object of Kubernetes' API.
type object map[string]any
