package live

import (
	"fmt"

	"github.com/warmpath/warmpath/internal/route"
)

// Sentence says in words why a decision is as it is.
func Sentence(d *route.Decision) string {
	room := fmt.Sprintf("%d running", d.Load)
	if d.Bound > 0 {
		room = fmt.Sprintf("%d running, at most %d", d.Load, d.Bound)
	}
	home := "its home"
	if d.HomeCount > 1 {
		home = fmt.Sprintf("one of its %d homes", d.HomeCount)
	}
	first := "a home"
	if homes := d.Homes(); len(homes) > 0 {
		first = homes[0]
	}
	warm := ""
	if d.Warm > 0 {
		warm = fmt.Sprintf(" It has served %d characters of this prompt before.", d.Warm)
	}
	switch d.Reason {
	case route.NoEndpoints:
		return "No endpoint could be chosen: the membership is empty."
	case route.Undecided:
		return "Envoy went on before an endpoint was chosen."
	case route.SingleCandidate:
		return fmt.Sprintf("%s is the only endpoint that can serve it.", d.Chosen)
	case route.ByRandom:
		return fmt.Sprintf("%s was drawn at random (%s).", d.Chosen, room)
	case route.NoKey:
		return fmt.Sprintf("The request has no text to go by; %s is the least loaded (%s).", d.Chosen, room)
	case route.Home:
		return fmt.Sprintf("%s is %s and had room (%s).%s", d.Chosen, home, room, warm)
	case route.Overflow:
		return fmt.Sprintf("%s had no room (%d running); %s is the next in this prefix's order that had (%s).%s", first, d.HomeLoad, d.Chosen, room, warm)
	case route.WarmElsewhere:
		return fmt.Sprintf("%s is not its home, but has served %d characters of this prompt and costs less (%s).", d.Chosen, d.Warm, room)
	case route.Relief:
		return fmt.Sprintf("Its homes have too much to prefill, or in their memory; %s will be faster (%s).%s", d.Chosen, room, warm)
	case route.Warm:
		return fmt.Sprintf("%s has served %d characters of this prompt before (%s).", d.Chosen, d.Warm, room)
	case route.Saturated:
		return fmt.Sprintf("Every endpoint was at its bound; %s is the least loaded (%s).%s", d.Chosen, room, warm)
	default:
		return leastLoaded(d, room)
	}
}

func leastLoaded(d *route.Decision, room string) string {
	if d.Strategy == route.KVAware {
		return fmt.Sprintf("Nobody is warm enough for it; %s is the least loaded (%s).", d.Chosen, room)
	}
	return fmt.Sprintf("%s is the least loaded (%s).", d.Chosen, room)
}
