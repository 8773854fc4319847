package procurement

import (
	"maps"
	"slices"
)

// Party is whose work waits at a provider. What a customer does through many accounts is that
// of one party, as far as this is known.
type Party struct {
	Key    string // of those who share their turns; empty: the service itself
	Funded bool   // own money was credited
}

// first reports whether a party comes before those on trial. Trial accounts cost nothing.
func (p Party) first() bool { return p.Funded || p.Key == "" }

// Line is a queue that serves parties in turns by how many they had: start-time fair queueing
// with a credit for those with little recent use. The work of one delays another's, which
// comes now and then, by the entry that is served at the moment, and not by its number. In the
// long run each has as many turns. While funded parties wait, those on trial have one turn of
// nine. The zero value is an empty line.
type Line[T any] struct {
	waiting []waiter      // who has entries, by arrival
	entries map[Party][]T // by who waits
	// used is the turns of who waits, or was served lately, on the clock that virtual is of.
	used map[Party]int64
	// virtual is the most turns that one who was served had before.
	virtual int64
	turn    int64
	inRow   int // turns of funded parties since one on trial that waits had its turn
	length  int
}

// waiter is a party that has entries.
type waiter struct {
	Party
	since int64 // the turn of its last entry, or before it came
}

const (
	// credit is how many turns a party may take ahead of those who wait already, once it has
	// not used them for as long.
	credit = 8
	// fundedInRow is how many turns funded parties have before one on trial has its turn.
	fundedInRow = 8
	// passedAtMost is how many turns of others like it one who waits is passed by. It is more
	// than few parties take, and keeps ever new ones from holding up the rest.
	passedAtMost = 64
	// rememberedAtMost bounds the parties that do not wait and whose turns are stored.
	rememberedAtMost = 256
)

// Len returns the number of entries.
func (l *Line[T]) Len() int { return l.length }

// Push adds an entry.
func (l *Line[T]) Push(who Party, entry T) {
	if l.entries == nil {
		l.entries, l.used = map[Party][]T{}, map[Party]int64{}
	}
	if len(l.entries[who]) == 0 {
		l.waiting = append(l.waiting, waiter{who, l.turn})
		if used, known := l.used[who]; !known || used < l.virtual-credit {
			l.used[who] = l.virtual - credit
		}
	}
	l.entries[who] = append(l.entries[who], entry)
	l.length++
}

// next returns the index of who is next.
func (l *Line[T]) next() int {
	first := l.inRow < fundedInRow
	if !l.waits(first) {
		first = !first
	}
	next := -1
	for i, w := range l.waiting {
		switch {
		case w.first() != first:
		case l.turn-w.since >= passedAtMost:
			return i
		case next < 0 || l.used[w.Party] < l.used[l.waiting[next].Party]:
			next = i
		}
	}
	return next
}

// waits reports whether a party waits that comes first, or one that does not.
func (l *Line[T]) waits(first bool) bool {
	return slices.ContainsFunc(l.waiting, func(w waiter) bool { return w.first() == first })
}

// Peek returns the next entry, unless another comes that is served before it. It returns
// false if there is none.
func (l *Line[T]) Peek() (entry T, ok bool) {
	if l.length == 0 {
		return entry, false
	}
	return l.entries[l.waiting[l.next()].Party][0], true
}

// Next removes the next entry. It returns false if there is none.
func (l *Line[T]) Next() (entry T, ok bool) {
	if l.length == 0 {
		return entry, false
	}
	i := l.next()
	who := l.waiting[i].Party
	list := l.entries[who]
	entry, l.entries[who] = list[0], list[1:]
	l.length--
	l.turn++
	l.waiting = slices.Delete(l.waiting, i, i+1)
	if len(list) == 1 {
		delete(l.entries, who)
	} else {
		l.waiting = append(l.waiting, waiter{who, l.turn})
	}
	if l.inRow++; !who.first() || !l.waits(false) {
		l.inRow = 0
	}
	l.virtual = max(l.virtual, l.used[who])
	l.used[who]++
	l.forget()
	return entry, true
}

// forget drops the turns of those who do not wait and would begin with their credit again.
// Are they too many, the clock goes on.
func (l *Line[T]) forget() {
	for ; len(l.used) > len(l.waiting)+rememberedAtMost; l.virtual++ {
		for who, used := range l.used {
			if len(l.entries[who]) == 0 && used <= l.virtual-credit {
				delete(l.used, who)
			}
		}
	}
}

// Before returns the entries that are served before one that who adds now, in their
// order, if no other is added.
func (l *Line[T]) Before(who Party) (list []T) {
	then := *l
	then.waiting, then.entries, then.used = slices.Clone(l.waiting), maps.Clone(l.entries), maps.Clone(l.used)
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
