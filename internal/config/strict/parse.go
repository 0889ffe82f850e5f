// Package strict reads YAML the way an operator wants a configuration read:
// nothing is guessed, nothing unknown is passed over, and one reading reports
// every fault with its line, path, value and bound.
//
// A decoder is a table of fields: each names a key and says what to do with its
// value. Absent keys leave their destination alone, so it is filled with
// defaults first.
//
//	root := strict.Parse(name, data, limit, &problems)
//	root.Fields(strict.Field{Name: "attempts", Decode: strict.Int(&attempts, 0, 5)})
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Parse returns the root of the one YAML document in data. Faults of the text
// itself go to problems, and the returned Value is then inert. The name stands
// in messages; limit is the largest size in bytes that is looked at.
func Parse(name string, data []byte, limit int, problems *Problems) Value {
	root := Value{file: name, sink: problems}
	if line, message := unreadable(data, limit); message != "" {
		root.add(Problem{Line: line, Message: message})
		return root
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		root.add(Problem{Message: "the file is empty"})
		return root
	case err != nil:
		root.add(syntaxProblem(err, data))
		return root
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		root.add(syntaxProblem(err, data))
		return root
	default:
		root.add(Problem{Line: second.Line, Message: "a second YAML document begins here, want exactly one"})
		return root
	}
	root.node = document.Content[0]
	if root.node.Kind == yaml.ScalarNode && root.node.ShortTag() == "!!null" {
		root.node = nil
		root.add(Problem{Message: "the file is empty"})
	}
	return root
}

// unreadable finds what keeps data from being YAML text at all.
func unreadable(data []byte, limit int) (line int, message string) {
	if len(data) > limit {
		return 0, fmt.Sprintf("the file has %d bytes, at most %d are read", len(data), limit)
	}
	for line, text := range bytes.Split(data, []byte("\n")) {
		if !utf8.Valid(text) {
			return line + 1, "the text is not UTF-8"
		}
		if i := bytes.IndexFunc(text, unprintable); i >= 0 {
			r, _ := utf8.DecodeRune(text[i:])
			return line + 1, fmt.Sprintf("the text holds the control character %U", r)
		}
	}
	return 0, ""
}

// unprintable reports what YAML does not allow in a text.
func unprintable(r rune) bool {
	switch r {
	case '\t', '\r', '\u0085':
		return false
	case '\ufffe', '\uffff':
		return true
	default:
		return unicode.IsControl(r)
	}
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// bareIPv6 matches an address that YAML takes for the beginning of a list.
var bareIPv6 = regexp.MustCompile(`[-:,]\s+\[[0-9A-Fa-f]*:[0-9A-Fa-f:.]*\]:[0-9]`)

var unknownAnchor = regexp.MustCompile(`unknown anchor '([^']+)' referenced$`)

// syntaxProblem turns the parser's error into a Problem, and names the two
// slips that its own words do not explain.
func syntaxProblem(err error, data []byte) Problem {
	text := err.Error()
	found := syntaxLine.FindStringSubmatch(text)
	if found == nil {
		return Problem{Message: "not YAML: " + text}
	}
	p := Problem{Line: syntaxLineOf(found[1], text, data), Message: "not YAML: " + text[len(found[0]):]}
	if anchor := unknownAnchor.FindStringSubmatch(text); anchor != nil {
		if i := bytes.Index(data, []byte("*"+anchor[1])); i >= 0 {
			p.Line = lineOf(data, i)
		}
		return p
	}
	if strings.HasPrefix(strings.TrimLeft(lineAt(data, p.Line), " "), "\t") {
		p.Message += " (a tab indents this line; YAML wants spaces)"
	} else if at := bareIPv6.FindIndex(data); at != nil {
		// The parser blames a line nearby, so this one is named.
		p.Line = lineOf(data, at[1])
		p.Message += ` (quote an IPv6 address: "[fd00::1]:8000")`
	}
	return p
}

// fromParser matches the errors that the library's parser raises, in contrast
// to its scanner: their lines are counted from 0.
var fromParser = regexp.MustCompile(`did not find expected (key|node content|',' or|'-' indicator|<)`)

// syntaxLineOf makes the line number of a syntax error count from 1, and stay
// within the text; the library leaves number 0 out.
func syntaxLineOf(number, text string, data []byte) int {
	line, _ := strconv.Atoi(number)
	if number == "" || fromParser.MatchString(text) {
		line++
	}
	return min(line, lineOf(data, len(bytes.TrimRight(data, "\r\n"))))
}

// lineOf returns the number of the line that holds data[offset], from 1.
func lineOf(data []byte, offset int) int { return bytes.Count(data[:offset], []byte("\n")) + 1 }

// lineAt returns the line with the given number, counted from 1; empty when
// there is none.
func lineAt(data []byte, number int) string {
	for text := range bytes.Lines(data) {
		if number--; number == 0 {
			return string(text)
		}
	}
	return ""
}
