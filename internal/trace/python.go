package trace

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// message is a message of a chat.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// pythonMessages reads what Python's repr writes of a list of messages: dicts
// with string keys and string values. Errors say where, not what: it is a prompt.
func pythonMessages(literal string) ([]message, error) {
	p := &pythonReader{rest: literal}
	var messages []message
	err := p.list('[', ']', func() error {
		var m message
		err := p.list('{', '}', func() error { return p.member(&m) })
		messages = append(messages, m)
		return err
	})
	if p.space(); err == nil && p.rest != "" {
		err = errors.New("more behind the list")
	}
	if err != nil {
		return nil, fmt.Errorf("not a Python list of messages at byte %d of %d: %w", len(literal)-len(p.rest), len(literal), err)
	}
	return messages, nil
}

// pythonReader reads a literal of Python from its front.
type pythonReader struct{ rest string }

func (p *pythonReader) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// take takes a character if it is the next behind white space.
func (p *pythonReader) take(c byte) bool {
	if p.space(); p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// list reads a list or dict; each reads an element. A comma may end it.
func (p *pythonReader) list(opening, closing byte, each func() error) error {
	if !p.take(opening) {
		return fmt.Errorf("want %c", opening)
	}
	for !p.take(closing) {
		if err := each(); err != nil {
			return err
		}
		if !p.take(',') {
			if p.take(closing) {
				return nil
			}
			return fmt.Errorf("want , or %c", closing)
		}
	}
	return nil
}

// member reads a member of a dict. Others than those of a message are ignored.
func (p *pythonReader) member(m *message) error {
	key, err := p.str()
	if err != nil {
		return err
	}
	if !p.take(':') {
		return errors.New("want a colon")
	}
	value, err := p.str()
	switch key {
	case "role":
		m.Role = value
	case "content":
		m.Content = value
	}
	return err
}

// str reads a string.
func (p *pythonReader) str() (string, error) {
	p.space()
	if p.rest == "" || p.rest[0] != '\'' && p.rest[0] != '"' {
		return "", errors.New("want a string")
	}
	quote := p.rest[0]
	var b strings.Builder
	for s := p.rest[1:]; s != ""; {
		switch s[0] {
		case quote:
			p.rest = s[1:]
			return b.String(), nil
		case '\\':
			r, n := pythonEscape(s)
			if n == 0 {
				p.rest = s
				return "", errors.New("want an escape that repr writes")
			}
			b.WriteRune(r)
			s = s[n:]
		default:
			// Behind the first: that may be a quote of the other kind.
			n := 1 + strings.IndexAny(s[1:]+`\`, `\'"`)
			b.WriteString(s[:n])
			s = s[n:]
		}
	}
	return "", errors.New("a string without an end")
}

// pythonEscape returns what an escape of repr stands for, and its length; 0 if
// it is none.
func pythonEscape(s string) (r rune, n int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch c := s[1]; c {
	case '\\', '\'', '"':
		return rune(c), 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'x', 'u', 'U':
		n = map[byte]int{'x': 4, 'u': 6, 'U': 10}[c]
		if len(s) < n {
			return 0, 0
		}
		code, err := strconv.ParseUint(s[2:n], 16, 32)
		if err != nil || code > utf8.MaxRune {
			return 0, 0
		}
		return rune(code), n
	}
	return 0, 0
}
