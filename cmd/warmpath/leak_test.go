package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// fragment is how many bytes of a secret in a row give it away.
const fragment = 8

// leaks finds secrets, and fragments of them, in whatever form programs print
// them.
type leaks struct {
	// needles are texts of one width each, with what they are of.
	needles map[int]map[string]string
}

// secret is made up anew for each thing that must not come out.
func secret(r *rand.Rand) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, 28)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

// add has a secret looked for, by a name.
func (l *leaks) add(name, secret string) {
	if l.needles == nil {
		l.needles = make(map[int]map[string]string)
	}
	for form, text := range map[string]string{"plain": secret, "lower case": strings.ToLower(secret), "upper case": strings.ToUpper(secret)} {
		l.windows(name+", "+form, text, fragment)
	}
	for form, text := range map[string]string{"hex": hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret)))} {
		l.windows(name+", "+form, text, 2*fragment)
	}
	for offset := range 3 { // what stands before it shifts the letters of base64
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, offset), secret...))
		l.windows(name+", base64", text[4:len(text)-4], fragment*4/3+1)
	}
	var escaped, percent strings.Builder
	for _, b := range []byte(secret) {
		fmt.Fprintf(&escaped, `\u%04x`, b)
		fmt.Fprintf(&percent, "%%%02X", b)
	}
	l.windows(name+", escaped", escaped.String(), 6*fragment)
	l.windows(name+", percent", percent.String(), 3*fragment)
}

func (l *leaks) windows(what, text string, width int) {
	if l.needles[width] == nil {
		l.needles[width] = make(map[string]string)
	}
	for i := 0; i+width <= len(text); i++ {
		l.needles[width][text[i:i+width]] = what
	}
}

// find says which secrets are in the data, in which forms.
func (l *leaks) find(data string) (found []string) {
	for width, needles := range l.needles {
		for i := 0; i+width <= len(data); i++ {
			if what, ok := needles[data[i:i+width]]; ok && !slices.Contains(found, what) {
				found = append(found, what)
			}
		}
	}
	slices.Sort(found)
	return found
}

// The search finds a fragment in each form, and nothing where there is none.
func TestLeaksAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var l leaks
	s := secret(r)
	l.add("it", s)
	part := s[5:14]
	for form, text := range map[string]string{
		"plain": part, "lower case": strings.ToLower(part), "upper case": strings.ToUpper(part),
		"hex": hex.EncodeToString([]byte(part)), "HEX": fmt.Sprintf("%X", part),
		"base64": base64.StdEncoding.EncodeToString([]byte("Bearer " + s)),
	} {
		if found := l.find("key=" + text + ";"); !slices.ContainsFunc(found, func(f string) bool { return strings.EqualFold(f, "it, "+form) }) {
			t.Errorf("%s: found %q in %q", form, found, text)
		}
	}
	if found := l.find(s[:7] + " " + s[7:14] + secret(r)); found != nil {
		t.Errorf("found %q in what is none", found)
	}
}
