package strict

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// distance is the definition of the edit distance, without the table.
func distance(a, b string) int {
	switch {
	case a == "":
		return len(b)
	case b == "":
		return len(a)
	case a[0] == b[0]:
		return distance(a[1:], b[1:])
	default:
		return 1 + min(distance(a[1:], b[1:]), distance(a[1:], b), distance(a, b[1:]))
	}
}

func TestEditDistance(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := editDistance(a, b), distance(a, b); got != want {
			t.Fatalf("editDistance(%q, %q) = %d, want %d", a, b, got, want)
		}
	})
}

func TestParseLimit(t *testing.T) {
	for size, want := range map[int]string{
		10: "",
		11: "f: the file has 11 bytes, at most 10 are read",
	} {
		var problems Problems
		root := Parse("f", []byte(strings.Repeat("a", size)), 10, &problems)
		if problems.Error() != want || root.OK() != (want == "") {
			t.Errorf("%d bytes: %q, usable %t", size, problems.Error(), root.OK())
		}
	}
}

func TestProblemsError(t *testing.T) {
	if err := (Problems{}).Err(); err != nil {
		t.Errorf("no problem is the error %v", err)
	}
	many := make(Problems, 25)
	for i := range many {
		many[i] = Problem{File: "f", Line: i, Path: "a.b", Value: "7", Message: "is odd"}
	}
	lines := strings.Split(many.Err().Error(), "\n")
	if len(lines) != 21 || lines[0] != "f: a.b: 7 is odd" || lines[1] != "f:1: a.b: 7 is odd" || lines[20] != "and 5 more" {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

// A decoder runs over what did not parse without a second complaint.
func TestInertValue(t *testing.T) {
	var problems Problems
	root := Parse("f", []byte("a: ["), 100, &problems)
	n, s, b, f := 1, "s", true, 0.5
	for _, decode := range []func(Value){Int(&n, 0, 0), Text(&s), Bool(&b), Float(&f, 0, 0), Enum(&s, "x")} {
		decode(root)
	}
	if root.Fields() || root.Each(nil) || len(problems) != 1 || n != 1 || s != "s" || !b || f != 0.5 {
		t.Errorf("an inert value was decoded: %v", problems)
	}
}

// What is wrong is shown, but of a key or certificate in the wrong place only
// what it is, however YAML folds it.
func TestKeysAreNotShown(t *testing.T) {
	const secret = "MC4CAQAwBQYDK2VwBCIEIFu7aX9pQw2LkT0sYcRZ"
	for name, yaml := range map[string]string{
		"block":         "|\n  -----BEGIN PRIVATE KEY-----\n  " + secret + "\n  -----END PRIVATE KEY-----\n",
		"folded":        "-----BEGIN PRIVATE KEY-----\n  " + secret + "\n  -----END PRIVATE KEY-----\n",
		"behind a word": "\"key: -----BEGIN EC PRIVATE KEY-----\\n" + secret + "\"",
		"no end":        "\"-----" + secret + "\"",
	} {
		for what, decode := range map[string]func(Value){"path": Path(new(string)), "word": Enum(new(string), "x"), "number": Int(new(int), 0, 1)} {
			var problems Problems
			Parse("f", []byte("a: "+yaml), 1000, &problems).Fields(Field{Name: "a", Decode: decode})
			if len(problems) != 1 {
				t.Fatalf("%s as a %s: %v", name, what, problems)
			}
			text := problems.Error()
			if i := strings.Index(text, secret[:8]); i >= 0 && name != "no end" || strings.Contains(text, secret[:33]) || len(text) > 200 {
				t.Errorf("%s as a %s: %s", name, what, text)
			}
		}
	}
}

func TestPath(t *testing.T) {
	for yaml, want := range map[string]string{
		"certs/key.pem":                     "",
		"\"/etc/\u00e9 x\"":                 "",
		"\"a\\nb\"":                         `f:1: a: "a?b" is not a path (want the path of a file, not what it holds)`,
		"7":                                 "f:1: a: 7 is not a string (quote it)",
		strings.Repeat("p", maxPath):        "",
		strings.Repeat("p", maxPath) + "/q": `f:1: a: "` + strings.Repeat("p", maxShown) + `…" is a path of 4098 bytes (want at most 4096)`,
	} {
		var problems Problems
		var path string
		Parse("f", []byte("a: "+yaml), 10_000, &problems).Fields(Field{Name: "a", Decode: Path(&path)})
		if got := problems.Error(); got != want && (want != "" || len(problems) > 0) || (path == "") != (want != "") {
			t.Errorf("%.60s: %q with the problem %q, want %q", yaml, path, got, want)
		}
	}
}
