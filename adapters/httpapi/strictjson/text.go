package strictjson

import (
	"strconv"
	"unicode/utf8"
)

// text steps over a string and reports whether it has escapes.
func (r *Reader) text() (escaped bool) {
	r.i++
	for r.i < len(r.body) {
		c := r.body[r.i]
		switch {
		case plainText[c]:
			r.i++
		case c == '"':
			r.i++
			return escaped
		case c == '\\':
			escaped = true
			if !r.escape() {
				return true
			}
		case c < ' ':
			r.fail("control character in a string")
			return escaped
		case c < utf8.RuneSelf:
			r.i++
		default:
			char, size := utf8.DecodeRune(r.body[r.i:])
			if char == utf8.RuneError && size == 1 {
				r.fail("invalid UTF-8")
				return escaped
			}
			r.i += size
		}
	}
	r.fail("a string does not end")
	return escaped
}

// escape steps over one escape sequence. It returns false if that is malformed.
func (r *Reader) escape() bool {
	if r.i+1 >= len(r.body) {
		r.fail("a string does not end")
		return false
	}
	switch r.body[r.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		r.i += 2
		return true
	case 'u':
		return r.unicode()
	}
	r.fail("malformed escape")
	return false
}

// unicode steps over an escape such as \u00e9, or two that are a surrogate pair.
func (r *Reader) unicode() bool {
	unit, ok := hexUnit(r.body[r.i:])
	switch {
	case !ok:
		r.fail("malformed escape")
		return false
	case unit == 0:
		r.fail("NUL character in a string")
		return false
	case unit >= 0xdc00 && unit <= 0xdfff:
		r.fail("lone surrogate")
		return false
	case unit >= 0xd800 && unit <= 0xdbff:
		low, ok := hexUnit(r.body[r.i+6:])
		if !ok || low < 0xdc00 || low > 0xdfff {
			r.fail("lone surrogate")
			return false
		}
		r.i += 6
	}
	r.i += 6
	return true
}

// hexUnit returns the UTF-16 unit of an escape such as \u00e9.
func hexUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

// number steps over a number (RFC 8259 section 6) that fits a float64.
func (r *Reader) number() {
	from := r.i
	if r.at('-') {
		r.i++
	}
	ok := r.at('0')
	if ok {
		r.i++
	} else {
		ok = r.digits()
	}
	if ok && r.at('.') {
		r.i++
		ok = r.digits()
	}
	exact := true
	if ok && (r.at('e') || r.at('E')) {
		exact = false
		r.i++
		if r.at('+') || r.at('-') {
			r.i++
		}
		ok = r.digits()
	}
	if !ok {
		r.fail("malformed number")
		return
	}
	if !exact || r.i-from > 300 {
		if _, err := strconv.ParseFloat(string(r.body[from:r.i]), 64); err != nil {
			r.fail("a number is out of range")
		}
	}
}

// digits steps over digits and reports whether there was one.
func (r *Reader) digits() bool {
	from := r.i
	for r.i < len(r.body) && r.body[r.i] >= '0' && r.body[r.i] <= '9' {
		r.i++
	}
	return r.i > from
}
