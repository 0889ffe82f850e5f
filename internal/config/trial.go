package config

import (
	"github.com/warmpath/warmpath/internal/config/strict"
	"github.com/warmpath/warmpath/internal/route"
)

// Trial is a second policy of a pool: one that decides without effect (a shadow), or one
// that really decides for a share of the conversations (a split).
type Trial struct {
	// Share of the conversations is decided by it, 0 to 1; 0 is off.
	Share float64 `yaml:"share"`
	// ShareLength is how many characters of a prompt's beginning tell conversations
	// apart, route.LevelChars to route.MaxPrefixLength.
	ShareLength   int `yaml:"shareLength"`
	RoutingConfig `yaml:",inline"`
}

func defaultTrial(r RoutingConfig) Trial {
	return Trial{ShareLength: route.LevelChars, RoutingConfig: r}
}

func (t *Trial) decode(v strict.Value) {
	hasShare := false
	isMapping := v.Fields(append(t.fields(),
		strict.Field{Name: "share", Decode: func(v strict.Value) {
			hasShare = true
			strict.Float(&t.Share, 0, 1)(v)
		}},
		strict.Field{Name: "shareLength", Decode: strict.Int(&t.ShareLength, route.LevelChars, route.MaxPrefixLength)},
	)...)
	if isMapping && !hasShare {
		v.Report("share", "is missing (want 0..1, the part of the conversations; 0 switches it off)")
	}
}
