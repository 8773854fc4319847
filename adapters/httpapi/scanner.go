package httpapi

import "iter"

// scanner walks over JSON that was judged, so nothing in it can surprise.
type scanner struct {
	b []byte
	i int
}

// next steps over space and is the first character of what follows.
func (s *scanner) next() byte {
	for s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\r' || s.b[s.i] == '\t' {
		s.i++
	}
	return s.b[s.i]
}

// fields walks over an object. The body of the loop reads or skips each value.
func (s *scanner) fields() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s.next()
		s.i++ // {
		for s.next() != '}' {
			if s.b[s.i] == ',' {
				s.i++
				s.next()
			}
			key, escaped := s.quoted()
			if escaped {
				key = unescape(key)
			}
			s.next()
			s.i++ // :
			if !yield(key) {
				return
			}
		}
		s.i++
	}
}

// elements walks over an array. The body of the loop reads or skips each value.
func (s *scanner) elements() iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		s.i++ // [
		for s.next() != ']' {
			if s.b[s.i] == ',' {
				s.i++
				s.next()
			}
			if !yield(struct{}{}) {
				return
			}
		}
		s.i++
	}
}

// quoted reads a string as it is written, without its quotes.
func (s *scanner) quoted() (raw []byte, escaped bool) {
	s.i++
	from := s.i
	for ; s.b[s.i] != '"'; s.i++ {
		if s.b[s.i] == '\\' {
			escaped = true
			s.i++
		}
	}
	raw = s.b[from:s.i]
	s.i++
	return raw, escaped
}

// skip steps over one value.
func (s *scanner) skip() {
	switch s.next() {
	case '"':
		s.quoted()
	case '{', '[':
		s.i++
		s.rest()
	default:
		for s.i < len(s.b) {
			switch s.b[s.i] {
			case ',', '}', ']', ' ', '\n', '\r', '\t':
				return
			}
			s.i++
		}
	}
}

// rest steps to the end of the object or array that is being read.
func (s *scanner) rest() {
	for depth := 1; depth > 0; {
		switch s.b[s.i] {
		case '"':
			s.quoted()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.i++
	}
}
