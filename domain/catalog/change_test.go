package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
)

func TestCompare(t *testing.T) {
	gb := func(no, price string) catalog.Product { return catalog.Product{No: no, Price: domain.MustMoney(price)} }
	ip := func(no, month, quarter string) catalog.Product {
		return catalog.Product{No: no, Durations: []catalog.Duration{{Days: 30, Price: domain.MustMoney(month)},
			{Days: 90, Price: domain.MustMoney(quarter)}}}
	}
	named := gb("same", "1")
	named.Name = "another name"
	before := []catalog.Product{gb("gone", "1"), gb("same", "1"), gb("dearer", "0.4"), gb("slip", "0.4"), ip("ip", "2", "5"), gb("cheap", "4")}
	got := catalog.Compare(before, []catalog.Product{gb("new", "1"), named, gb("dearer", "3.999999"), gb("slip", "4"), ip("ip", "3", "5"), gb("cheap", "0.4")})
	for name, c := range map[string]struct {
		got  []string
		want string
	}{
		"added":   {got.Added, "new"},
		"removed": {got.Removed, "gone"},
		"changed": {got.Changed, "same, dearer price 0.4 -> 3.999999, slip price 0.4 -> 4, ip price of 30 days 2 -> 3, cheap price 4 -> 0.4"},
		"jumps":   {got.Jumps, "slip price 0.4 -> 4, cheap price 4 -> 0.4"},
	} {
		if text := strings.Join(c.got, ", "); text != c.want {
			t.Errorf("%s is %q, want %q", name, text, c.want)
		}
	}
	if none := catalog.Compare(before, slices.Clone(before)); len(none.Added)+len(none.Removed)+len(none.Changed)+len(none.Jumps) > 0 {
		t.Errorf("the same catalogue differs: %+v", none)
	}
}
