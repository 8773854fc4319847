package httpapi

import (
	"bytes"
	"encoding/json"
	"unicode"
)

// keySet holds the keys of one object. The few keys that an honest object has
// are compared one by one; many go into a map, so that a body full of keys
// costs no more than its length.
type keySet struct {
	few  [12][]byte
	n    int
	many map[string]struct{}
}

// add is false when the key is in the set already.
func (s *keySet) add(key []byte) bool {
	if s.many != nil {
		if _, twice := s.many[string(key)]; twice {
			return false
		}
		s.many[string(key)] = struct{}{}
		return true
	}
	for _, k := range s.few[:s.n] {
		if bytes.Equal(k, key) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = key
		s.n++
		return true
	}
	s.many = make(map[string]struct{}, 2*len(s.few))
	for _, k := range s.few {
		s.many[string(k)] = struct{}{}
	}
	s.many[string(key)] = struct{}{}
	return true
}

// plain reports whether a key could be the name of a field of ours.
func plain(key []byte) bool {
	for _, c := range key {
		if (c < 'a' || c > 'z') && c != '_' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// folded writes a key so that two which encoding/json binds alike are equal:
// each rune as the lower case one of those it folds to.
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

// unescape is the text of a string whose escapes were judged.
func unescape(raw []byte) []byte {
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return raw // cannot be: it was judged
	}
	return []byte(s)
}

// shown is a key as an error may name it: only one that looks like a name of
// ours, since a key is the caller's text too.
func shown(key []byte) string {
	if len(key) == 0 || len(key) > 64 || !plain(key) {
		return "?"
	}
	return string(key)
}
