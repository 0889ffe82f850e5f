package load

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Prompt is what a request asks, in no format yet.
type Prompt struct {
	// Prefix numbers the group of prompts that begin alike, from 0.
	Prefix int
	// Tenant may be empty.
	Tenant   string
	Messages []Message
}

// text is the prompt for an API that knows no messages.
func (p Prompt) text() string {
	texts := make([]string, len(p.Messages))
	for i, m := range p.Messages {
		texts[i] = m.Content
	}
	return strings.Join(texts, "\n")
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

var vocabulary = strings.Fields(`the wheel turns slowly under a load that nobody measured because each bearing
	was chosen for rain and salt while our drawings show only summer roads so check torque oil chain brake cable spoke
	lamp frame pedal saddle rim tyre valve pump key lock bell rack`)

// minChars is the length of the shortest texts that are still different from one
// another.
const minChars = 16

// randomText returns head and random words, cut to the length in characters,
// each of one byte, in JSON too.
func randomText(random *rand.Rand, head string, chars int) string {
	var b strings.Builder
	b.Grow(chars + minChars)
	b.WriteString(head)
	for b.Len() < chars {
		b.WriteByte(' ')
		b.WriteString(vocabulary[random.IntN(len(vocabulary))])
	}
	return b.String()[:chars]
}

// Conversations describes chats of several turns. Each request holds all turns
// before it, as clients of the chat API send them.
type Conversations struct {
	// Count is how many there are, Turns how often a user asks in each.
	Count, Turns int
	// SystemChars, UserChars and AnswerChars are the lengths of the messages.
	// The system prompt is the same in all conversations; 0 is none.
	SystemChars, UserChars, AnswerChars int
	// Seed makes the texts and the order.
	Seed uint64
}

// Prompts returns Count × Turns prompts. Each conversation's are in their order;
// the conversations are interleaved at random. A prompt's Prefix is its
// conversation.
func (c Conversations) Prompts() ([]Prompt, error) {
	err := atLeast(
		bound{"Count", c.Count, 1}, bound{"Turns", c.Turns, 1}, bound{"SystemChars", c.SystemChars, 0},
		bound{"UserChars", c.UserChars, minChars}, bound{"AnswerChars", c.AnswerChars, minChars},
	)
	if err != nil {
		return nil, fmt.Errorf("conversations: %w", err)
	}
	random := newRandom(c.Seed)
	var system []Message
	if c.SystemChars > 0 {
		system = []Message{{"system", randomText(random, "Rules.", c.SystemChars)}}
	}
	so := make([][]Message, c.Count) // what was said so far
	var prompts []Prompt
	for _, n := range shuffledUses(random, c.Count, c.Turns) {
		if so[n] == nil {
			so[n] = append([]Message(nil), system...)
		} else {
			so[n] = append(so[n], Message{"assistant", randomText(random, "Well,", c.AnswerChars)})
		}
		so[n] = append(so[n], Message{"user", randomText(random, fmt.Sprintf("Guest %d:", n), c.UserChars)})
		prompts = append(prompts, Prompt{Prefix: n, Messages: append([]Message(nil), so[n]...)})
	}
	return prompts, nil
}

// shuffledUses returns each of 0..n-1 so many times, in a random order.
func shuffledUses(random *rand.Rand, n, uses int) []int {
	order := make([]int, n*uses)
	for i := range order {
		order[i] = i % n
	}
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}
