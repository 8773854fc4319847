// Package fair divides what is scarce among those who ask for it: a queue in which parties take turns, and a semaphore
// for each owner.
package fair

import (
	"maps"
	"slices"
)

// Party is whose work waits at a provider. What a customer does through many accounts is that
// of one party, as far as this is known.
type Party struct {
	Key    string // of those who share their turns; empty: the service itself
	Funded bool   // the account is no trial
}

// first reports whether a party comes before those on trial. Trial accounts cost nothing.
func (p Party) first() bool { return p.Funded || p.Key == "" }

// Queue is a queue that serves parties in turns by how many they had: start-time fair queueing
// with a credit for those with little recent use. The work of one delays another's, which
// comes now and then, by the entry that is served at the moment, and not by its number. In the
// long run each has as many turns. While funded parties wait, those on trial have one turn of
// nine. The zero value is an empty queue.
type Queue[T any] struct {
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
func (q *Queue[T]) Len() int { return q.length }

// Push adds an entry.
func (q *Queue[T]) Push(who Party, entry T) {
	if q.entries == nil {
		q.entries, q.used = map[Party][]T{}, map[Party]int64{}
	}
	if len(q.entries[who]) == 0 {
		q.waiting = append(q.waiting, waiter{who, q.turn})
		if used, known := q.used[who]; !known || used < q.virtual-credit {
			q.used[who] = q.virtual - credit
		}
	}
	q.entries[who] = append(q.entries[who], entry)
	q.length++
}

// next returns the index of who is next.
func (q *Queue[T]) next() int {
	first := q.inRow < fundedInRow
	if !q.waits(first) {
		first = !first
	}
	next := -1
	for i, w := range q.waiting {
		switch {
		case w.first() != first:
		case q.turn-w.since >= passedAtMost:
			return i
		case next < 0 || q.used[w.Party] < q.used[q.waiting[next].Party]:
			next = i
		}
	}
	return next
}

// waits reports whether a party waits that comes first, or one that does not.
func (q *Queue[T]) waits(first bool) bool {
	return slices.ContainsFunc(q.waiting, func(w waiter) bool { return w.first() == first })
}

// Peek returns the next entry, unless another comes that is served before it. It returns
// false if there is none.
func (q *Queue[T]) Peek() (entry T, ok bool) {
	if q.length == 0 {
		return entry, false
	}
	return q.entries[q.waiting[q.next()].Party][0], true
}

// Next removes the next entry. It returns false if there is none.
func (q *Queue[T]) Next() (entry T, ok bool) {
	if q.length == 0 {
		return entry, false
	}
	i := q.next()
	who := q.waiting[i].Party
	list := q.entries[who]
	entry, q.entries[who] = list[0], list[1:]
	q.length--
	q.turn++
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if len(list) == 1 {
		delete(q.entries, who)
	} else {
		q.waiting = append(q.waiting, waiter{who, q.turn})
	}
	if q.inRow++; !who.first() || !q.waits(false) {
		q.inRow = 0
	}
	q.virtual = max(q.virtual, q.used[who])
	q.used[who]++
	q.forget()
	return entry, true
}

// forget drops the turns of those who do not wait and would begin with their credit again.
// Are they too many, the clock goes on.
func (q *Queue[T]) forget() {
	for ; len(q.used) > len(q.waiting)+rememberedAtMost; q.virtual++ {
		for who, used := range q.used {
			if len(q.entries[who]) == 0 && used <= q.virtual-credit {
				delete(q.used, who)
			}
		}
	}
}

// Before returns the entries that are served before one that who adds now, in their
// order, if no other is added.
func (q *Queue[T]) Before(who Party) (list []T) {
	then := *q
	then.waiting, then.entries, then.used = slices.Clone(q.waiting), maps.Clone(q.entries), maps.Clone(q.used)
	own := len(q.entries[who])
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
