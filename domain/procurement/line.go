package procurement

// Line is a queue that serves those who wait in turns, one entry of each, so that the
// entries of one delay those of another by one turn and not by their number. The zero
// value is an empty line.
type Line[T any] struct {
	turns   []string       // who has entries, the next first
	entries map[string][]T // by who waits
	length  int
}

// Len returns the number of entries.
func (l *Line[T]) Len() int { return l.length }

// Before returns the entries that are served before one that who adds now, in their
// order, if no other is added.
func (l *Line[T]) Before(who string) (list []T) {
	last := len(l.entries[who]) // the round of the new entry, from 0
	for round := range last + 1 {
		for _, turn := range l.turns {
			if turn == who && round == last {
				return list
			}
			if round < len(l.entries[turn]) {
				list = append(list, l.entries[turn][round])
			}
		}
	}
	return list
}

// Push adds an entry.
func (l *Line[T]) Push(who string, entry T) {
	if l.entries == nil {
		l.entries = map[string][]T{}
	}
	if len(l.entries[who]) == 0 {
		l.turns = append(l.turns, who)
	}
	l.entries[who] = append(l.entries[who], entry)
	l.length++
}

// Next removes the next entry. It returns false if there is none.
func (l *Line[T]) Next() (entry T, ok bool) {
	if l.length == 0 {
		return entry, false
	}
	who := l.turns[0]
	list := l.entries[who]
	entry, l.entries[who], l.turns = list[0], list[1:], l.turns[1:]
	if len(list) > 1 {
		l.turns = append(l.turns, who)
	} else {
		delete(l.entries, who)
	}
	l.length--
	return entry, true
}
