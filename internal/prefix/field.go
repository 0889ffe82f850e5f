package prefix

import (
	"github.com/cespare/xxhash/v2"
)

// MaxName is how many bytes of a model, adapter or cache salt are kept as they
// are. Of a longer one the beginning is kept and a hash of the whole.
const MaxName = 256

// MaxTenant is the largest length of a tenant.
const MaxTenant = 64

// field is a string of the root object; the last of duplicates wins.
type field struct {
	buf []byte
	// set: a string was read to its end. invalid: there was something else.
	set, invalid, over bool
	// last is the value of a former request, to use its memory again.
	last string
}

func (f *field) reset() { f.buf, f.set, f.invalid, f.over = f.buf[:0], false, false, false }

// write appends to the value, which goes on in d when it gets too long.
func (f *field) write(p []byte, d *xxhash.Digest) {
	if room := MaxName - len(f.buf); !f.over && len(p) > room {
		f.over = true
		d.Reset()
		_, _ = d.Write(f.buf)
	}
	if f.over {
		_, _ = d.Write(p)
		p = p[:min(len(p), MaxName-len(f.buf))]
	}
	f.buf = append(f.buf, p...)
}

// end ends the value.
func (f *field) end(d *xxhash.Digest) {
	f.set = true
	if f.over {
		f.buf = abbreviate(f.buf, d.Sum64())
	}
}

// abbreviate replaces the end of name by a hash of the whole.
func abbreviate(name []byte, hash uint64) []byte {
	const suffix = 1 + 16
	n := MaxName - suffix
	for n > 0 && !isStart(name[n]) {
		n--
	}
	name = append(name[:n], '#')
	const hex = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		name = append(name, hex[hash>>shift&15])
	}
	return name
}

// text returns the value, or "" when there was none.
func (f *field) text() string {
	if !f.set {
		return ""
	}
	if string(f.buf) != f.last {
		f.last = string(f.buf)
	}
	return f.last
}

// bound shortens a name that does not come from the body, as fields are.
func bound(name string) (string, bool) {
	if len(name) <= MaxName {
		return name, false
	}
	return string(abbreviate([]byte(name[:MaxName]), xxhash.Sum64String(name))), true
}

// ValidTenant reports whether s can name a tenant: 1 to MaxTenant printable
// ASCII characters, the first not a space. The rule is that of SageMaker's
// X-Amzn-SageMaker-Prefix-Aware-Id.
func ValidTenant(s string) bool {
	if len(s) == 0 || len(s) > MaxTenant || s[0] == ' ' {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
