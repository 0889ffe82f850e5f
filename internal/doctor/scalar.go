package doctor

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Envoy's reader takes these for numbers, in C's notation, and makes of all others texts.
var (
	integer = regexp.MustCompile(`^[+-]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)$`)
	decimal = regexp.MustCompile(`^[+-]?(\.[0-9]+|[0-9]+\.?[0-9]*)([eE][+-]?[0-9]+)?$`)
)

// scalar writes a value as Envoy reads it, which is neither YAML 1.1 nor 1.2: what is quoted
// is a text, then come the names of truth values and integers, and all else is a text that
// its field may take for a number.
func (c *converter) scalar(n *yaml.Node, k kind) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case c.truths[n]:
		c.out.WriteString(strconv.FormatBool(strings.ContainsAny(n.Value[:1], "tTyY1")))
		return
	case n.Style&yaml.TaggedStyle != 0: // Envoy looks at no tags
	case n.Style&quoted != 0:
		c.text(n.Value, k)
		return
	case n.ShortTag() == "!!null":
		c.out.WriteString("null")
		return
	}
	if b, is := truth(n.Value); is {
		c.out.WriteString(strconv.FormatBool(b))
	} else if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil && integer.MatchString(n.Value) {
		c.integer(i)
	} else if f, err := strconv.ParseFloat(n.Value, 64); err == nil && decimal.MatchString(n.Value) && !json.Valid([]byte(n.Value)) {
		c.quote(strconv.FormatFloat(f, 'g', -1, 64))
	} else {
		c.text(n.Value, k)
	}
}

// integer writes a large one as a text, as Envoy does.
func (c *converter) integer(i int64) {
	text := strconv.FormatInt(i, 10)
	if i < math.MinInt32 || i > math.MaxInt32 {
		text = strconv.Quote(text)
	}
	c.out.WriteString(text)
}

// truth reads a truth value's name: in small letters, in capitals, or with the first one
// a capital.
func truth(name string) (value, is bool) {
	small := strings.ToLower(name)
	if name != small && name != strings.ToUpper(name) && name[1:] != small[1:] {
		return false, false
	}
	switch small {
	case "y", "yes", "true", "on":
		return true, true
	case "n", "no", "false", "off":
		return false, true
	}
	return false, false
}
