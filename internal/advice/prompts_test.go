package advice

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestLoners(t *testing.T) {
	prompts := func(n, chunks, beginnings, who int) (list []Prompt) {
		for i := range n {
			p := Prompt{Chunks: make([]uint64, chunks)}
			for c := range p.Chunks {
				p.Chunks[c] = uint64(i%beginnings*1000 + c)
			}
			if who > 0 {
				p.Who = fmt.Sprint(i % who)
			}
			list = append(list, p)
		}
		return list
	}
	for name, c := range map[string]struct {
		prompts               []Prompt
		suspicious, returning bool
	}{
		"all differ":               {prompts(200, 8, 200, 0), true, false},
		"of few clients":           {prompts(200, 8, 200, 10), true, true},
		"each by another client":   {prompts(200, 8, 200, 200), true, false},
		"of clients with three":    {prompts(201, 8, 201, 67), true, true},
		"of clients with fewer":    {prompts(201, 8, 201, 68), true, false},
		"some come again":          {prompts(200, 8, 150, 0), false, false},
		"all begin alike":          {prompts(200, 8, 1, 0), false, false},
		"few":                      {prompts(99, 8, 99, 0), false, false},
		"short":                    {prompts(200, 7, 200, 0), false, false},
		"no hashes":                {prompts(200, 0, 200, 0), false, false},
		"a few long among short":   {append(prompts(400, 2, 1, 0), prompts(50, 8, 50, 0)...), false, false},
		"the short ones have them": {append(prompts(200, 1, 200, 0), prompts(200, 8, 200, 0)...), false, false},
	} {
		l := FindLoners(c.prompts)
		if l.Suspicious() != c.suspicious || l.Suspicious() && l.Returning != c.returning {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if got := Distinct(prompts(10, 8, 3, 0), 64); got != 3*8*64 {
		t.Errorf("%d distinct tokens", got)
	}
}

// instructions are a text of about so many bytes.
func instructions(app, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "Application %d has rule %d. ", app, i)
	}
	return b.String()
}

func TestVolatile(t *testing.T) {
	rest := instructions(0, 3000)
	for name, c := range map[string]struct {
		text  func(i int) string
		at    int // -1 if nothing is found
		share float64
	}{
		"a time in front":    {func(i int) string { return fmt.Sprintf("%09d %s", i*7919%1e9, rest) }, 0, 1},
		"an id behind words": {func(i int) string { return fmt.Sprintf("Größe: id-%x; %s", i*i+1e6, rest) }, 10, 1},
		"another length": {func(i int) string {
			return "id " + strings.Repeat(string(rune('a'+i%26)), i%50) + fmt.Sprint(i) + " " + rest
		}, 3, 1},
		"in some":               {func(i int) string { return []string{fmt.Sprintf("at %09d ", i*7919), "always "}[i%2] + rest }, 3, .5},
		"of several together":   {func(i int) string { return fmt.Sprintf("at %09d %s", i*7919, instructions(i%5, 3000)) }, 3, 1},
		"the same":              {func(int) string { return rest }, -1, 0},
		"a question at the end": {func(i int) string { return rest + fmt.Sprint("question ", i) }, -1, 0},
		"nothing in common":     {func(i int) string { return instructions(i, 3000) }, -1, 0},
		"little behind it":      {func(i int) string { return fmt.Sprintf("at %09d ", i*7919) + rest[:900] }, -1, 0},
		"far behind":            {func(i int) string { return rest[:1500] + fmt.Sprintf("at %09d ", i*7919) + rest }, -1, 0},
		"rarely": {func(i int) string {
			return []string{fmt.Sprintf("at %09d ", i), "", "", "", "", "", "", "", "", ""}[i%10] + rest
		}, -1, 0},
		"a long question": {func(i int) string { return strings.Repeat(fmt.Sprint("what of ", i, "? "), 40) + rest }, -1, 0},
	} {
		var texts Texts
		for i := range 100 {
			texts.Add(c.text(i))
		}
		v, found := texts.Volatile()
		if found != (c.at >= 0) || found && (v.Character < c.at || v.Character > c.at+8 || math.Abs(v.Share-c.share) > 0.06) {
			t.Errorf("%s: %+v, found %t", name, v, found)
		}
		if spelled := texts.Spelled(); spelled != 0 {
			t.Errorf("%s: spelled differently: %v", name, spelled)
		}
	}
}

func TestSpelled(t *testing.T) {
	words := strings.Fields(instructions(0, 2000))
	keys := func(i int) string {
		a, b := `"alpha": 1, "beta": [2, 3]`, `"gamma": "ä b"`
		if i%2 == 0 {
			a, b = b, a
		}
		return "{" + a + ", " + b + "} " + strings.Join(words, " ")
	}
	for name, c := range map[string]struct {
		text func(i int) string
		want float64
	}{
		"white space": {func(i int) string { return strings.Join(words, strings.Repeat(" ", 1+i%3)) }, 1},
		"key order":   {keys, 1},
		"escapes": {func(i int) string {
			return []string{`"größe" \"a\nb\"`, `"gr\u00f6\u00dfe" "a` + "\n" + `b"`}[i%2] + strings.Join(words, " ")
		}, 1},
		"one spelling": {func(int) string { return strings.Join(words, " ") }, 0},
		"other words":  {func(i int) string { return fmt.Sprint(i, " ") + strings.Join(words, strings.Repeat(" ", 1+i%3)) }, 0},
		"rarely": {func(i int) string {
			return fmt.Sprint(i/2*2, strings.Repeat(" ", 1+max(i%20-18, 0))) + strings.Join(words, " ")
		}, 0},
		"short": {func(i int) string { return strings.Repeat(" ", i%3) + "few words" }, 0},
	} {
		var texts Texts
		for i := range 100 {
			texts.Add(c.text(i))
		}
		if got := texts.Spelled(); math.Abs(got-c.want) > 0.02 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// However many and long the prompts are, what is kept of them is bounded.
func TestTextsAreBounded(t *testing.T) {
	var texts Texts
	if texts.Given() {
		t.Error("texts before the first")
	}
	for range 3 * maxTexts {
		texts.Add(strings.Repeat("x", 3*headBytes))
	}
	if len(texts.heads) != maxTexts || len(texts.heads[0]) != headBytes || !texts.Given() {
		t.Errorf("%d texts of %d bytes", len(texts.heads), len(texts.heads[0]))
	}
}

// Any text can be looked at.
func FuzzTexts(f *testing.F) {
	f.Add("a", `\`)
	f.Add(`\u`, `\u12`)
	f.Add(strings.Repeat(`ä\u00e4 `, 500), strings.Repeat("\xff ", 500))
	f.Fuzz(func(t *testing.T, a, b string) {
		var texts Texts
		for _, text := range []string{a, b, a + b, b + a, a} {
			texts.Add(text)
		}
		if v, ok := texts.Volatile(); ok && (v.Share <= 0 || v.Share > 1 || v.Character >= near) {
			t.Errorf("%+v", v)
		}
		if s := texts.Spelled(); s < 0 || s > 1 {
			t.Errorf("spelled %v", s)
		}
	})
}
