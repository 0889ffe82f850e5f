package envoypolicy

import (
	"errors"
	"fmt"
	"strings"
)

// The text form of a protobuf message is written for people: protobuf promises
// neither its white space nor that it can be read again, may put a marker such
// as "goo.gle/debugproto" before it and "[REDACTED]" in the place of values.
// So it is read into a plain tree without a schema, and whatever is not our
// namespace may be of any kind.

// node is one field of a message.
type node struct {
	name   string
	scalar string // of a number, a name or a string
	quoted bool   // it was a string
	list   bool   // children are values in brackets
	nodes  []node // of a message or a list
}

// child returns the last field of the name, the one that counts when a field
// that occurs once stands there twice; nil if there is none.
func (n *node) child(name string) *node {
	for i := len(n.nodes) - 1; i >= 0; i-- {
		if n.nodes[i].name == name {
			return &n.nodes[i]
		}
	}
	return nil
}

var errTooDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)

// parseText reads a whole text form.
func parseText(text string) (node, error) {
	p := parser{lexer: lexer{rest: text}}
	if err := p.advance(); err != nil {
		return node{}, err
	}
	var root node
	err := p.message(&root, tokenEnd, 0)
	return root, err
}

// parser reads with one token in hand.
type parser struct {
	lexer
	token token
}

func (p *parser) advance() (err error) {
	p.token, err = p.next()
	return err
}

// message reads fields up to the closing token, which it passes.
func (p *parser) message(into *node, closing tokenKind, depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	for p.token.kind != closing {
		if err := p.field(into, depth); err != nil {
			return err
		}
	}
	if closing == tokenEnd {
		return nil
	}
	return p.advance()
}

func (p *parser) field(into *node, depth int) error {
	var n node
	switch p.token.kind {
	case ',', ';':
		return p.advance()
	case tokenWord:
		n.name = p.token.text
		if err := p.advance(); err != nil {
			return err
		}
	case '[': // an extension, or the type of an Any that is shown in full
		var name node
		if err := p.list(&name, depth+1); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s where a field should begin", p.token.kind)
	}
	switch p.token.kind {
	case ':':
		if err := p.advance(); err != nil {
			return err
		}
	case '{', '<':
	default:
		return nil // a word that names no field: a marker
	}
	if err := p.value(&n, depth); err != nil {
		return err
	}
	into.nodes = append(into.nodes, n)
	return nil
}

func (p *parser) value(n *node, depth int) error {
	switch p.token.kind {
	case '{', '<':
		closing := tokenKind('}')
		if p.token.kind == '<' {
			closing = '>'
		}
		if err := p.advance(); err != nil {
			return err
		}
		return p.message(n, closing, depth+1)
	case '[':
		n.list = true
		return p.list(n, depth+1)
	case tokenWord:
		n.scalar = p.token.text
		return p.advance()
	case tokenString:
		n.quoted = true
		for p.token.kind == tokenString { // adjacent strings are one
			n.scalar += p.token.text
			if err := p.advance(); err != nil {
				return err
			}
		}
		return nil
	default:
		return fmt.Errorf("%s where a value should be", p.token.kind)
	}
}

// list reads values in brackets, the opening one in hand.
func (p *parser) list(n *node, depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	if err := p.advance(); err != nil {
		return err
	}
	for p.token.kind != ']' {
		if p.token.kind == ',' {
			if err := p.advance(); err != nil {
				return err
			}
			continue
		}
		var element node
		if err := p.value(&element, depth); err != nil {
			return err
		}
		n.nodes = append(n.nodes, element)
	}
	return p.advance()
}

// tokenKind is a punctuation character, or one of the kinds below.
type tokenKind byte

const (
	tokenEnd    tokenKind = 0
	tokenWord   tokenKind = 'w' // a name, a number
	tokenString tokenKind = 's'
)

// String names the kind in errors.
func (k tokenKind) String() string {
	switch k {
	case tokenEnd:
		return "the end"
	case tokenWord:
		return "a word"
	case tokenString:
		return "a string"
	default:
		return fmt.Sprintf("%q", rune(k))
	}
}

type token struct {
	kind tokenKind
	text string // of a word or, decoded, of a string
}

type lexer struct{ rest string }

const (
	space       = " \t\r\n\v\f"
	punctuation = "{}<>[]:,;"
)

func (l *lexer) next() (token, error) {
	l.rest = strings.TrimLeft(l.rest, space)
	for strings.HasPrefix(l.rest, "#") { // a comment
		_, l.rest, _ = strings.Cut(l.rest, "\n")
		l.rest = strings.TrimLeft(l.rest, space)
	}
	if l.rest == "" {
		return token{kind: tokenEnd}, nil
	}
	switch c := l.rest[0]; {
	case strings.IndexByte(punctuation, c) >= 0:
		l.rest = l.rest[1:]
		return token{kind: tokenKind(c)}, nil
	case c == '"' || c == '\'':
		return l.quoted(c)
	case c == 0:
		return token{}, errors.New("a NUL where a field or a value should be")
	}
	end := strings.IndexAny(l.rest, space+punctuation+"\"'#\x00")
	if end < 0 {
		end = len(l.rest)
	}
	word := l.rest[:end]
	l.rest = l.rest[end:]
	return token{kind: tokenWord, text: word}, nil
}

func (l *lexer) quoted(quote byte) (token, error) {
	body := l.rest[1:]
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case quote:
			l.rest = body[i+1:]
			text, err := unescape(body[:i])
			return token{kind: tokenString, text: text}, err
		}
	}
	return token{}, errors.New("a string without an end")
}
