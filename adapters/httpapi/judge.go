package httpapi

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"agentproxy/domain"
)

// judge reads a raw body once, before anything is bound from it, and refuses
// what encoding/json would let pass: invalid UTF-8, lone surrogates, NUL,
// duplicate keys (also such that differ in case only), numbers beyond float64,
// deep nesting and trailing data. Every field of ours has a name of a-z, 0-9
// and _, so a key with any other character could only bind without regard to
// case: its characters are replaced by spaces, which makes it unknown. An error
// never repeats what was sent.
func judge(body []byte) error {
	j := judgement{body: body}
	j.space()
	if !j.at('{') {
		if j.i == len(body) {
			return domain.ErrInvalid.Msgf("the body is empty; send a JSON object")
		}
		if err := j.value(0); err != nil {
			return err
		}
		return domain.ErrInvalid.Msgf("the body must be a JSON object")
	}
	if err := j.object(0); err != nil {
		return j.named(err)
	}
	j.space()
	if j.i != len(body) {
		return j.fault("data follows the JSON object")
	}
	return nil
}

// maxDepth bounds how deep a body nests; ours need four levels.
const maxDepth = 32

// judgement is one pass over a body.
type judgement struct {
	body []byte
	i    int
	path string // of the value that is refused, with a leading dot
	what string // is wrong with it
}

func (j *judgement) fault(what string) error {
	j.what = what
	return domain.ErrInvalid.Msgf("the body is not valid JSON: %s at byte %d", what, j.i)
}

// named is a fault with the field that it was found in, if it was in one.
func (j *judgement) named(err error) error {
	field := strings.TrimPrefix(j.path, ".")
	if field == "" {
		return err
	}
	if j.what == givenTwice {
		return domain.InvalidField(field, givenTwice)
	}
	var e *domain.Error
	if !errors.As(err, &e) {
		return err
	}
	return e.With("fields", []domain.FieldIssue{{Field: field, Issue: "is not valid JSON: " + j.what}})
}

const givenTwice = "is given twice (upper and lower case count as the same)"

func (j *judgement) at(c byte) bool { return j.i < len(j.body) && j.body[j.i] == c }

func (j *judgement) space() {
	for j.i < len(j.body) {
		switch j.body[j.i] {
		case ' ', '\t', '\n', '\r':
			j.i++
		default:
			return
		}
	}
}

func (j *judgement) value(depth int) error {
	if j.i >= len(j.body) {
		return j.fault("it ends too early")
	}
	switch c := j.body[j.i]; c {
	case '{':
		return j.object(depth)
	case '[':
		return j.array(depth)
	case '"':
		_, err := j.text()
		return err
	case 't':
		return j.word("true")
	case 'f':
		return j.word("false")
	case 'n':
		return j.word("null")
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return j.number()
		}
		return j.fault("unexpected character")
	}
}

func (j *judgement) word(w string) error {
	if !bytes.HasPrefix(j.body[j.i:], []byte(w)) {
		return j.fault("unexpected character")
	}
	j.i += len(w)
	return nil
}

func (j *judgement) array(depth int) error {
	if depth == maxDepth {
		return j.fault("it nests too deep")
	}
	j.i++
	j.space()
	if j.at(']') {
		j.i++
		return nil
	}
	for n := 0; ; n++ {
		j.space()
		if err := j.value(depth + 1); err != nil {
			j.path = "[" + strconv.Itoa(n) + "]" + j.path
			return err
		}
		j.space()
		switch {
		case j.at(','):
			j.i++
		case j.at(']'):
			j.i++
			return nil
		default:
			return j.fault("expected , or ]")
		}
	}
}

func (j *judgement) object(depth int) error {
	if depth == maxDepth {
		return j.fault("it nests too deep")
	}
	j.i++
	j.space()
	if j.at('}') {
		j.i++
		return nil
	}
	var seen keySet
	for {
		j.space()
		if !j.at('"') {
			return j.fault("expected a key")
		}
		name, err := j.key(&seen)
		if err != nil {
			return err
		}
		j.space()
		if !j.at(':') {
			return j.fault("expected :")
		}
		j.i++
		j.space()
		if err := j.value(depth + 1); err != nil {
			j.path = "." + shown(name) + j.path
			return err
		}
		j.space()
		switch {
		case j.at(','):
			j.i++
		case j.at('}'):
			j.i++
			return nil
		default:
			return j.fault("expected , or }")
		}
	}
}

// key reads a key, refuses a second one that is equal but for case, and blanks
// one that is no name of ours.
func (j *judgement) key(seen *keySet) ([]byte, error) {
	from := j.i + 1
	escaped, err := j.text()
	if err != nil {
		return nil, err
	}
	raw := j.body[from : j.i-1]
	name := raw
	if escaped {
		name = unescape(raw)
	}
	ours := plain(name)
	if !ours {
		name = folded(name)
	}
	if !seen.add(name) {
		j.path, j.what = "."+shown(name), givenTwice
		return nil, domain.ErrInvalid
	}
	if !ours {
		for k := range raw {
			raw[k] = ' '
		}
	}
	return name, nil
}
