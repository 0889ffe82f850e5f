package live

import (
	"fmt"
	"strconv"

	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// Trials are the policies on trial in a pool, and what has come of them; none for nil.
func Trials(t *trial.Trials) (list []view.Trial) {
	if t.Current() == nil {
		return nil
	}
	s := t.State()
	if s.Shadow.Share > 0 {
		v := trialOf("shadow", s.Shadow, s.OfShadow.Real, s.OfShadow.Shadow)
		v.Moved = new(float64(s.OfShadow.Moved) / float64(max(s.OfShadow.Real.Decisions(), 1)))
		list = append(list, v)
	}
	if s.Split.Share > 0 {
		list = append(list, trialOf("split", s.Split, s.OfSplit.Main, s.OfSplit.Split))
	}
	return list
}

func trialOf(kind string, s trial.Settings, main, tried trial.Total) view.Trial {
	return view.Trial{
		Kind: kind, Share: s.Share, Strategy: s.Policy.Strategy.String(),
		PrefixLength: prefixLength(s.Policy), ConcurrencyThreshold: threshold(s.Policy),
		Main: outcome(main), Tried: outcome(tried),
	}
}

// A split is off its share if its part of at least offShareRequests prompts is offShare
// times it, or a part of that.
const (
	offShare         = 3
	offShareRequests = 200
)

// offShares warns of splits that decide on far more or fewer prompts than their share:
// it is one of conversations, told apart by their first characters, and where these are
// the same for many it takes all of them or none.
func offShares(p *view.Pool) (list []view.Warning) {
	for _, t := range p.Trials {
		all := float64(t.Main.Requests + t.Tried.Requests)
		real := float64(t.Tried.Requests) / max(all, 1)
		if t.Kind != "split" || all < offShareRequests || t.Share*all < offShareRequests/10 || real <= offShare*t.Share && real >= t.Share/offShare {
			continue
		}
		list = append(list, view.Warning{
			Kind:   "split",
			Pool:   p.Name,
			Text:   fmt.Sprintf("In pool %s the split decides on %.1f %% of the prompts; its share is %.1f %%.", p.Name, 100*real, 100*t.Share),
			Advice: "Many prompts begin with the same characters, and stay together. Set split.shareLength to more than what they share, such as a system prompt.",
		})
	}
	return list
}

func outcome(t trial.Total) view.Outcome {
	v := view.Outcome{Requests: t.Decisions(), Overflow: t.Overflow()}
	if rate, known := t.HitRate(); known {
		v.Expected = new(rate)
	}
	if t.Mean > 0 {
		v.BusiestOverMean = new(t.Imbalance())
	}
	return v
}

func prefixLength(p route.Policy) string {
	if p.PrefixLength == route.AutoPrefixLength {
		return "auto"
	}
	return strconv.Itoa(p.PrefixLength)
}

func threshold(p route.Policy) string {
	if p.ConcurrencyThreshold == route.AutoConcurrencyThreshold {
		return "auto"
	}
	return strconv.Itoa(p.ConcurrencyThreshold)
}
