package replica

import (
	"fmt"
	"net/http"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// PromptOf returns the prompt in a JSON body as a replica with blocks of
// blockTokens tokens caches it, without the answer: for computing how much of a
// workload a cache can know. The body is of any API that /invocations takes.
func PromptOf(body []byte, blockTokens int) (engine.Prompt, error) {
	q, err := invocationFormat(http.Header{}, body).parse(body)
	if err != nil {
		return engine.Prompt{}, fmt.Errorf("prompt of a body of %d bytes: %w", len(body), err)
	}
	return engine.NewPrompt(blockTokens, q.prompt, q.model, q.salt), nil
}
