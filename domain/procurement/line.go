package procurement

import (
	"maps"
	"slices"
)

// Line is a queue that serves those who wait in turns, one entry of each, so that the
// entries of one delay those of another by one turn and not by their number. Whose last
// turn is longest ago is next. The zero value is an empty line.
type Line[T any] struct {
	waiting []string         // who has entries, by arrival
	entries map[string][]T   // by who waits
	turns   map[string]int64 // the last turn of who waits, or was served lately
	recent  []string         // who was served in the last turns, the latest last
	turn    int64
	length  int
}

// lately is how many turns a Line remembers. Who was served before them, or never, comes
// before all who were served since, and after those who have waited longer than that.
const lately = 64

// Len returns the number of entries.
func (l *Line[T]) Len() int { return l.length }

// Push adds an entry.
func (l *Line[T]) Push(who string, entry T) {
	if l.entries == nil {
		l.entries, l.turns = map[string][]T{}, map[string]int64{}
	}
	if len(l.entries[who]) == 0 {
		l.waiting = append(l.waiting, who)
		l.turns[who] = max(l.turns[who], l.turn-lately)
	}
	l.entries[who] = append(l.entries[who], entry)
	l.length++
}

// Next removes the next entry. It returns false if there is none.
func (l *Line[T]) Next() (entry T, ok bool) {
	if l.length == 0 {
		return entry, false
	}
	i := 0
	for j, who := range l.waiting {
		if l.turns[who] < l.turns[l.waiting[i]] {
			i = j
		}
	}
	who := l.waiting[i]
	list := l.entries[who]
	entry, l.entries[who] = list[0], list[1:]
	if len(list) == 1 {
		delete(l.entries, who)
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.length--
	l.turn++
	l.turns[who] = l.turn
	l.recent = append(l.recent, who)
	if len(l.recent) > lately {
		l.forget(l.recent[0])
		l.recent = l.recent[1:]
	}
	return entry, true
}

// forget drops the last turn of one who neither waits nor was served since.
func (l *Line[T]) forget(who string) {
	if l.turns[who] <= l.turn-lately && len(l.entries[who]) == 0 {
		delete(l.turns, who)
	}
}

// Before returns the entries that are served before one that who adds now, in their
// order, if no other is added.
func (l *Line[T]) Before(who string) (list []T) {
	then := Line[T]{waiting: slices.Clone(l.waiting), entries: maps.Clone(l.entries), turns: maps.Clone(l.turns),
		turn: l.turn, length: l.length}
	own := len(l.entries[who])
	if own > 0 {
		then.entries[who] = slices.Clip(then.entries[who])
	}
	var added T
	then.Push(who, added)
	for {
		left := len(then.entries[who])
		entry, _ := then.Next()
		if len(then.entries[who]) < left {
			if own == 0 {
				return list
			}
			own--
		}
		list = append(list, entry)
	}
}
