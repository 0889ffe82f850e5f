package doctor

// liveRules are about a gateway that runs. Who sends the probes makes their findings.
func liveRules() []Rule {
	const seen = "CONFIG.md, The live page"
	return []Rule{
		{
			ID: "probe-failed", Severity: Error, What: "a probe through the gateway fails",
			Why: "so do requests like it", Source: seen, Fix: "see what the gateway's access log says of it; --model and --path name what the probe asks for; 401 or 403: -H 'authorization: …'; 404: -H 'host: …', with the name that clients use; http:// is asked in HTTP/1.1, which a listener for HTTP/2 alone (h2c) does not answer",
		},
		{
			ID: "probe-unseen", Severity: Error, What: "warmpath did not decide a probe",
			Why: "the gateway does not ask it, or chooses before it answers", Source: "RATIONALE.md, What if warmpath is slow, frozen or gone?",
			Fix: "look at the gateway's configuration: doctor --envoy FILE or --admin URL",
		},
		{
			ID: "probe-elsewhere", Severity: Error, What: "a probe was served by another endpoint than decided",
			Why: "the caches that warmpath counts on are elsewhere", Source: "CASES.md, Membership and xDS",
			Fix: "doctor --admin URL: the cluster does not read the choice, or has not the endpoint",
		},
		{
			ID: "probe-cold", Severity: Warning, What: "the second of two equal probes found nothing in the engine's cache",
			Why: "with prefix caching off there is nothing that routing by prefix could hit", Source: "METRICS.md, Cache hit rate",
			Fix: "switch prefix caching on: vLLM --enable-prefix-caching, SGLang without --disable-radix-cache, llama.cpp with cache_prompt",
		},
		{
			ID: "cache-untold", Severity: Note, What: "the engine does not tell what it had in its cache",
			Why: "whether prefix caching works cannot be seen", Source: "METRICS.md, Cache hit rate",
			Fix: "vLLM: --enable-prompt-tokens-details; SGLang: --enable-cache-report",
		},
		{
			ID: "cache-unasked", Severity: Note, What: "no two equal probes went to the same server",
			Why: "what one has in its cache says nothing of another's, so that whether caches are hit was not looked at", Source: "METRICS.md, Cache hit rate",
			Fix: "mend what else is found, as probe-elsewhere; with a strategy that does not go by prefix, such as RANDOM, nothing",
		},
	}
}
