package domain

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// Page asks for one page of a list, newest first. Number counts from 1; Size is
// 1 to MaxPageSize. If After is not 0 the page begins after the item that has that
// place in the list, whatever was added since, and Number is 1. Tie orders items of one place
// where a list has such.
type Page struct {
	Number int
	Size   int
	After  int64
	Tie    int64
}

// MaxPageSize is the largest number of items on a page.
const MaxPageSize = 100

// Offset returns how many items precede the page. It returns a number past the
// end of every list if the product of number and size would overflow.
func (p Page) Offset() int {
	const past = 1 << 40
	if p.Number-1 > past/MaxPageSize {
		return past
	}
	return (p.Number - 1) * p.Size
}

// List is one page of items; Total counts the items of all pages. Next is the place of the
// last item of the page, for Page.After, and Tie what goes with it; 0 if no item follows.
type List[T any] struct {
	Items []T
	Page  Page
	Total int
	Next  int64
	Tie   int64
}

// TotalPages returns how many pages hold Total items, 0 for an empty list.
func (l List[T]) TotalPages() int { return (l.Total + l.Page.Size - 1) / max(l.Page.Size, 1) }

// Paged returns one page of a list in memory, whose places count from 1.
func Paged[T any](all []T, page Page) List[T] {
	from := min(page.Offset(), len(all))
	if page.After > 0 {
		from = int(min(page.After, int64(len(all))))
	}
	to := min(from+page.Size, len(all))
	list := List[T]{Items: all[from:to], Page: page, Total: len(all)}
	if to < len(all) {
		list.Next = int64(to)
	}
	return list
}

// PagedAfter is like Paged for a list whose items have places of their own, so that a page goes
// on after an item wherever that is now. It returns INVALID_REQUEST if the item is gone.
func PagedAfter[T any](all []T, page Page, place func(T) int64) (List[T], error) {
	from := min(page.Offset(), len(all))
	if page.After > 0 {
		i := slices.IndexFunc(all, func(item T) bool { return place(item) == page.After })
		if i < 0 {
			return List[T]{Page: page}, InvalidField("cursor", "names an item that is gone; begin again without it")
		}
		from = i + 1
	}
	to := min(from+page.Size, len(all))
	list := List[T]{Items: all[from:to], Page: page, Total: len(all)}
	if from < to && to < len(all) {
		list.Next = place(all[to-1])
	}
	return list, nil
}

// Ranked sorts a list in memory by its ranks, the highest first, and returns one page of it. Ranks are
// 0 or above; ids order items of one rank. A page that goes on after an item does so whether or not
// the item is still there, so it repeats nothing; it skips what rose above it meanwhile.
func Ranked[T any](all []T, page Page, rank func(T) int64, id func(T) string) List[T] {
	type ranked struct {
		item      T
		rank, tie int64
	}
	list := make([]ranked, len(all))
	for i, item := range all {
		list[i] = ranked{item, rank(item) + 1, PlaceOf(id(item))}
	}
	order := func(a, b ranked) int { return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.tie, b.tie)) }
	slices.SortFunc(list, order)
	from := min(page.Offset(), len(list))
	if page.After > 0 {
		last := ranked{rank: page.After, tie: page.Tie}
		if from = slices.IndexFunc(list, func(r ranked) bool { return order(r, last) > 0 }); from < 0 {
			from = len(list)
		}
	}
	to := min(from+page.Size, len(list))
	out := List[T]{Items: make([]T, to-from), Page: page, Total: len(list)}
	for i, r := range list[from:to] {
		out.Items[i] = r.item
	}
	if from < to && to < len(list) {
		out.Next, out.Tie = list[to-1].rank, list[to-1].tie
	}
	return out
}

// PlaceOf returns a place, above 0, that is made from an id.
func PlaceOf(id string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return int64(h.Sum64()>>1) | 1
}
