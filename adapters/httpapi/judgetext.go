package httpapi

import (
	"strconv"
	"unicode/utf8"
)

// text steps over a string and reports whether it has escapes.
func (j *judgement) text() (escaped bool, err error) {
	j.i++
	for j.i < len(j.body) {
		c := j.body[j.i]
		switch {
		case c == '"':
			j.i++
			return escaped, nil
		case c == '\\':
			escaped = true
			if err := j.escape(); err != nil {
				return true, err
			}
		case c < ' ':
			return escaped, j.fault("control character in a string")
		case c < utf8.RuneSelf:
			j.i++
		default:
			r, size := utf8.DecodeRune(j.body[j.i:])
			if r == utf8.RuneError && size == 1 {
				return escaped, j.fault("invalid UTF-8")
			}
			j.i += size
		}
	}
	return escaped, j.fault("a string does not end")
}

// escape steps over one escape sequence.
func (j *judgement) escape() error {
	if j.i+1 >= len(j.body) {
		return j.fault("a string does not end")
	}
	switch j.body[j.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		j.i += 2
		return nil
	case 'u':
		unit, ok := hexUnit(j.body[j.i:])
		switch {
		case !ok:
			return j.fault("malformed escape")
		case unit == 0:
			return j.fault("NUL character in a string")
		case unit >= 0xdc00 && unit <= 0xdfff:
			return j.fault("lone surrogate")
		case unit >= 0xd800 && unit <= 0xdbff:
			low, ok := hexUnit(j.body[j.i+6:])
			if !ok || low < 0xdc00 || low > 0xdfff {
				return j.fault("lone surrogate")
			}
			j.i += 6
		}
		j.i += 6
		return nil
	}
	return j.fault("malformed escape")
}

// hexUnit reads the UTF-16 unit of an escape such as \u00e9.
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
func (j *judgement) number() error {
	from := j.i
	if j.at('-') {
		j.i++
	}
	switch {
	case j.at('0'):
		j.i++
	case !j.digits():
		return j.fault("malformed number")
	}
	exact := true
	if j.at('.') {
		j.i++
		if !j.digits() {
			return j.fault("malformed number")
		}
	}
	if j.at('e') || j.at('E') {
		exact = false
		j.i++
		if j.at('+') || j.at('-') {
			j.i++
		}
		if !j.digits() {
			return j.fault("malformed number")
		}
	}
	if !exact || j.i-from > 300 {
		if _, err := strconv.ParseFloat(string(j.body[from:j.i]), 64); err != nil {
			return j.fault("a number is out of range")
		}
	}
	return nil
}

// digits steps over digits and reports whether there was one.
func (j *judgement) digits() bool {
	from := j.i
	for j.i < len(j.body) && j.body[j.i] >= '0' && j.body[j.i] <= '9' {
		j.i++
	}
	return j.i > from
}
