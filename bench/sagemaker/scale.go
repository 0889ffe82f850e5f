package main

// scale is the size of the experiment.
type scale struct {
	documents, documentTokens, longAnswer int
	conversations, turns                  int
	longRate, shortRate                   float64 // simulated requests a second
	longInFlight, shortInFlight           int
	// timeScale is how many times faster than real the replicas are.
	timeScale float64
	rounds    int
	// prefixes is how many are sent to count the shares of the replicas.
	prefixes int
	// alone is how many requests are sent one at a time to see what the machine
	// adds.
	alone int
}

// full takes about ten minutes. The rate of the long workload is where RANDOM's
// P90 begins to show queues: below 3 requests/s it is the time of a miss alone,
// which is the P90 of every strategy. In the closed loops some 3 (long) and 2
// (short) requests run on each replica; with more of them decoding takes a smaller
// part of the time, and what the cache saves a larger one.
func full() scale {
	return scale{
		documents: 60, documentTokens: documentTokens, longAnswer: 200, conversations: 60, turns: 10,
		longRate: 3.5, shortRate: 8, longInFlight: 24, shortInFlight: 14,
		timeScale: 4, rounds: 2, prefixes: 10_000, alone: 60,
	}
}

// brief shows in some seconds that everything works. Its times mean nothing.
func brief() scale {
	return scale{
		documents: 12, documentTokens: 2000, longAnswer: 8, conversations: 8, turns: 6,
		longRate: 8, shortRate: 8, longInFlight: 8, shortInFlight: 8,
		timeScale: 20, rounds: 1, prefixes: 700, alone: 10,
	}
}
