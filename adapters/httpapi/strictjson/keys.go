package strictjson

import (
	"bytes"
	"encoding/json"
	"unicode"
)

// keySet is the set of the keys of one object. Up to twelve keys are compared one
// by one; more go into a map, so that a body full of keys takes time in
// proportion to its length.
type keySet struct {
	first [12][]byte
	n     int
	more  map[string]struct{}
}

// add adds a key. It returns false if the set has it already.
func (s *keySet) add(key []byte) bool {
	if s.more != nil {
		if _, twice := s.more[string(key)]; twice {
			return false
		}
		s.more[string(key)] = struct{}{}
		return true
	}
	for _, k := range s.first[:s.n] {
		if bytes.Equal(k, key) {
			return false
		}
	}
	if s.n < len(s.first) {
		s.first[s.n] = key
		s.n++
		return true
	}
	s.more = make(map[string]struct{}, 2*len(s.first))
	for _, k := range s.first {
		s.more[string(k)] = struct{}{}
	}
	s.more[string(key)] = struct{}{}
	return true
}

// IsName reports whether text has only the characters of field names and ids of
// the API: a-z, 0-9 and _.
func IsName[T string | []byte](text T) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && c != '_' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// folded returns a key in a form that is equal for all keys that encoding/json
// binds to one field: each rune is replaced by the lower case one of its folds.
func folded(key []byte) []byte {
	return bytes.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		if least >= 'A' && least <= 'Z' {
			least += 'a' - 'A'
		}
		return least
	}, key)
}

// unescape returns the text of a string whose escapes are valid.
func unescape(raw []byte) []byte {
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return raw // not reached: the escapes are valid
	}
	return []byte(s)
}

// printable returns a key as an error may name it: as it is if it looks like a field of
// an API, in any case, else "?", since a key is text of the caller.
func printable(key []byte) string {
	if len(key) == 0 || len(key) > 64 || !IsName(bytes.ToLower(bytes.ReplaceAll(key, []byte("-"), nil))) {
		return "?"
	}
	return string(key)
}
