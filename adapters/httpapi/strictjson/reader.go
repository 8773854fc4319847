package strictjson

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// maxDepth bounds how deep a body nests; the API needs four levels.
const maxDepth = 32

// Error is the reason for which a body was refused. It never repeats a value that
// was sent.
type Error struct {
	Field  string // JSON path of the value, such as events[3].event_type; may be empty
	Issue  string // such as "invalid UTF-8"
	Offset int    // in bytes
	Key    bool   // the fault is the key that Field ends with, and not its value
}

// Error returns the issue and where it was found.
func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.Issue, e.Offset) }

const duplicate = "is given twice (upper and lower case count as the same)"

// Check validates a body. It returns an *Error unless the body is one JSON value
// that the Reader accepts, whose keys the names do not refuse.
//
// Every field of the API has a name of a-z, 0-9 and _, and encoding/json binds
// keys without regard to case. Check therefore overwrites a key with any other
// character with spaces, so that it matches no field.
func Check(body []byte, names *Names) error {
	r := NewReader(body, names)
	r.Skip()
	return r.End()
}

// Reader reads one JSON value and validates it on the way. After an error Next
// returns 0, the other methods return zero values, and Err returns the error.
type Reader struct {
	body  []byte
	i     int
	depth int
	err   *Error
	path  string // of the value that is refused, with a leading dot
	// names are those of the value that follows.
	names *Names
}

// NewReader returns a Reader of body, which it changes as Check does.
func NewReader(body []byte, names *Names) *Reader { return &Reader{body: body, names: names} }

// Err returns the first error, or nil.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	r.err.Field = strings.TrimPrefix(r.path, ".")
	return r.err
}

// End returns the first error. Data after the value is one.
func (r *Reader) End() error {
	if r.space(); r.err == nil && r.i != len(r.body) {
		r.fail("data follows the JSON value")
	}
	return r.Err()
}

// Next returns the first character of the value that follows, or 0 at the end of
// the body.
func (r *Reader) Next() byte {
	if r.i < len(r.body) && r.body[r.i] > ' ' {
		return r.body[r.i] // inlined: few values have space before them
	}
	return r.nextAfterSpace()
}

func (r *Reader) nextAfterSpace() byte {
	r.space()
	if r.i >= len(r.body) {
		return 0
	}
	return r.body[r.i]
}

// Fields iterates over the keys of the object that follows. The body of the loop
// reads or skips each value. A key that no field can have is nil.
func (r *Reader) Fields() iter.Seq[[]byte] { return r.object }

// Elements iterates over the indices of the array that follows. The body of the
// loop reads or skips each value.
func (r *Reader) Elements() iter.Seq[int] { return r.array }

// Skip validates the value that follows.
func (r *Reader) Skip() {
	switch c := r.Next(); c {
	case 0:
		r.fail("it ends too early")
	case '{':
		r.object(nil)
	case '[':
		r.array(nil)
	case '"':
		r.text()
	case 't':
		r.word("true")
	case 'f':
		r.word("false")
	case 'n':
		r.word("null")
	default:
		if c != '-' && (c < '0' || c > '9') {
			r.fail("unexpected character")
			return
		}
		r.number()
	}
}

// Text returns the string that follows, without its quotes and escapes. It may
// share memory with the body.
func (r *Reader) Text() []byte {
	if r.Next() != '"' {
		r.fail("expected a string")
		return nil
	}
	from := r.i + 1
	escaped := r.text()
	switch {
	case r.err != nil:
		return nil
	case escaped:
		return unescape(r.body[from : r.i-1])
	}
	return r.body[from : r.i-1]
}

// Number returns the text of the number that follows. It shares memory with the
// body.
func (r *Reader) Number() []byte {
	r.Next()
	from := r.i
	if r.number(); r.err != nil {
		return nil
	}
	return r.body[from:r.i]
}

// fail keeps the first error, and ends the body so that nothing more is read.
func (r *Reader) fail(issue string) {
	if r.err == nil {
		r.err = &Error{Issue: issue, Offset: r.i}
		r.i = len(r.body)
	}
}

// within notes which member of the enclosing value an error was found in.
func (r *Reader) within(member string) { r.path = member + r.path }

func (r *Reader) at(c byte) bool { return r.i < len(r.body) && r.body[r.i] == c }

func (r *Reader) space() {
	for r.i < len(r.body) {
		switch r.body[r.i] {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return
		}
	}
}

func (r *Reader) word(w string) {
	if !bytes.HasPrefix(r.body[r.i:], []byte(w)) {
		r.fail("unexpected character")
		return
	}
	r.i += len(w)
}

// open steps over the first character of an object or array, and reports whether
// it has members.
func (r *Reader) open(begin, end byte) bool {
	switch {
	case r.Next() != begin:
		r.fail("expected " + string(rune(begin)))
		return false
	case r.depth == maxDepth:
		r.fail("it nests too deep")
		return false
	}
	r.i++
	if r.space(); r.at(end) {
		r.i++
		return false
	}
	r.depth++
	return true
}

// more steps over the comma or the end that follows a member, and reports whether
// another member comes.
func (r *Reader) more(end byte) bool {
	switch c := r.Next(); {
	case c == ',':
		r.i++
		return true
	case c == end:
		r.i++
		r.depth--
	case end == ']':
		r.fail("expected , or ]")
	default:
		r.fail("expected , or }")
	}
	return false
}

// array reads an array. It skips the elements if yield is nil.
func (r *Reader) array(yield func(int) bool) {
	if !r.open('[', ']') {
		return
	}
	names := r.names
	for n := 0; ; n++ {
		r.names = names
		if yield == nil {
			r.Skip()
		} else if !yield(n) {
			return
		}
		if r.err != nil {
			r.within("[" + strconv.Itoa(n) + "]")
			return
		}
		if !r.more(']') {
			return
		}
	}
}

// object reads an object. It skips the values if yield is nil.
func (r *Reader) object(yield func([]byte) bool) {
	if !r.open('{', '}') {
		return
	}
	var seen keySet
	names := r.names
	for {
		if r.Next() != '"' {
			r.fail("expected a key")
			return
		}
		name, known := r.key(&seen, names)
		if r.err != nil {
			return
		}
		if r.Next() != ':' {
			r.fail("expected :")
			return
		}
		r.i++
		key := name
		if !known {
			key = nil
		}
		if yield == nil {
			r.Skip()
		} else if !yield(key) {
			return
		}
		if r.err != nil {
			r.within("." + printable(name))
			return
		}
		if !r.more('}') {
			return
		}
	}
}

// key reads a key and refuses a second one that is equal but for case. It
// overwrites a key that no field can have, returns it folded, and known is false.
// What the key names is the value that follows.
func (r *Reader) key(seen *keySet, names *Names) (name []byte, known bool) {
	from := r.i + 1
	escaped := r.text()
	if r.err != nil {
		return nil, false
	}
	raw := r.body[from : r.i-1]
	name = raw
	if escaped {
		name = unescape(raw)
	}
	known = IsName(name)
	var issue, written string
	if r.names, issue = names.lookUp(name); issue != "" {
		written = printable(name)
	}
	if !known {
		name = folded(name)
	}
	if !seen.add(name) {
		r.within("." + printable(name))
		r.fail(duplicate)
		r.err.Key = true
		return nil, false
	}
	if issue != "" {
		r.within("." + written)
		r.fail(issue)
		r.err.Key = true
		return nil, false
	}
	if !known {
		for k := range raw {
			raw[k] = ' '
		}
	}
	return name, known
}
