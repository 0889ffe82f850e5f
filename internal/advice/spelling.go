package advice

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// spelledWords is how many words are compared. Fewer are often the same by chance,
// and of more the last differ when their order does.
const spelledWords = 64

// Spelled returns the share of the prompts, 0 to 1, that begin with the same words
// as others but in another spelling: other white space, another order of keys, other
// escapes. It is 0 below what is worth telling.
func (t *Texts) Spelled() float64 {
	spellings := make(map[uint64]map[uint64]bool)
	requests := make(map[uint64]int)
	all := 0
	for _, head := range t.heads {
		words, end := wordsOf(head)
		if len(words) < spelledWords {
			continue
		}
		all++
		slices.Sort(words)
		same := xxhash.Sum64String(strings.Join(words, " "))
		if spellings[same] == nil {
			spellings[same] = make(map[uint64]bool)
		}
		spellings[same][xxhash.Sum64String(head[:end])] = true
		requests[same]++
	}
	several := 0
	for same, n := range requests {
		if len(spellings[same]) > 1 {
			several += n
		}
	}
	if share := float64(several) / float64(max(all, 1)); share >= shareOfTexts {
		return share
	}
	return 0
}

// wordsOf returns the first words of a text, escapes undone, and where the last of
// them ends.
func wordsOf(text string) (words []string, end int) {
	var word []byte
	for i := 0; i < len(text) && len(words) < spelledWords; {
		r, size := runeOf(text[i:])
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			word = utf8.AppendRune(word, r)
			end = i + size
		} else if len(word) > 0 {
			words, word = append(words, string(word)), word[:0]
		}
		i += size
	}
	return words, end
}

// runeOf returns the first character of a text, which may be escaped as in JSON.
func runeOf(text string) (r rune, size int) {
	if text[0] != '\\' || len(text) < 2 {
		return utf8.DecodeRuneInString(text)
	}
	if text[1] == 'u' && len(text) >= 6 {
		if n, err := strconv.ParseUint(text[2:6], 16, 16); err == nil {
			return rune(n), 6
		}
	}
	return ' ', 2 // of a line's end, a tab, a quote: no part of a word
}
