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
