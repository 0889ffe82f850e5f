// Package sim simulates a fleet of model servers behind routers, in virtual time:
// the engines are those of bench/replica/engine, the router's policies are those
// that warmpath runs, beside those of others to compare with. The same seed gives
// the same result.
package sim
