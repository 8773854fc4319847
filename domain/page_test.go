package domain_test

import (
	"slices"
	"testing"

	"agentproxy/domain"
)

// What is added between two pages neither repeats nor skips an item.
func TestPagedAfter(t *testing.T) {
	list := []string{"d", "c", "b", "a"}
	page := domain.Page{Number: 1, Size: 2}
	first, err := domain.PagedAfter(list, page, domain.PlaceOf)
	if err != nil || !slices.Equal(first.Items, []string{"d", "c"}) || first.Next == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	list = append([]string{"f", "e"}, list...)
	page.After = first.Next
	rest, err := domain.PagedAfter(list, page, domain.PlaceOf)
	if err != nil || !slices.Equal(rest.Items, []string{"b", "a"}) || rest.Next != 0 || rest.Total != 6 {
		t.Errorf("%+v, %v", rest, err)
	}
	if _, err := domain.PagedAfter(list[:2], page, domain.PlaceOf); err == nil {
		t.Error("went on after an item that is gone")
	}
}

// A list by rank is read to its end without a repetition, whatever is added, removed or grows meanwhile.
func TestRanked(t *testing.T) {
	type item struct {
		id   string
		rank int64
	}
	all := []item{{"a", 3}, {"b", 0}, {"c", 0}, {"d", 7}, {"e", 0}, {"f", 3}}
	read := func(page domain.Page) domain.List[item] {
		return domain.Ranked(all, page, func(i item) int64 { return i.rank }, func(i item) string { return i.id })
	}
	var got []string
	page := domain.Page{Number: 1, Size: 2}
	for n := 0; ; n++ {
		list := read(page)
		for _, i := range list.Items {
			got = append(got, i.id)
		}
		if numbered := read(domain.Page{Number: n + 1, Size: 2}); !slices.Equal(numbered.Items, list.Items) || list.Total != 6 {
			t.Errorf("page %d by number is %v of %d, want %v", n+1, numbered.Items, numbered.Total, list.Items)
		}
		if page.After, page.Tie = list.Next, list.Tie; page.After == 0 {
			break
		}
	}
	if len(got) != 6 || got[0] != "d" || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 6 {
		t.Fatalf("read %v", got)
	}
	first := read(domain.Page{Number: 1, Size: 2})
	seen := []string{first.Items[0].id, first.Items[1].id}
	all = slices.DeleteFunc(all, func(i item) bool { return i.id == seen[1] })
	all[slices.IndexFunc(all, func(i item) bool { return i.id == "d" })].rank = 99
	all = append(all, item{"new", 50})
	page.After, page.Tie, page.Size = first.Next, first.Tie, 10
	rest := read(page)
	if len(rest.Items) != 4 || rest.Next != 0 || slices.ContainsFunc(rest.Items, func(i item) bool {
		return i.id == "new" || slices.Contains(seen, i.id)
	}) {
		t.Errorf("after %v came %v", seen, rest)
	}
	if past := read(domain.Page{Number: 9, Size: 2}); len(past.Items) != 0 || past.Next != 0 {
		t.Errorf("past the end: %v", past)
	}
}
