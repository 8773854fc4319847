package catalog

import (
	"cmp"
	"slices"
	"strings"

	"agentproxy/domain/spelling"
)

// MaxNearest is the largest number of alternatives that Nearest and NearestCity return.
const MaxNearest = 5

// NearestCity returns up to MaxNearest of the offered cities by edit distance to a
// refused code, without regard to case and separators, then in alphabetical
// order.
func NearestCity(city string, offered []string) []string {
	asked := normalizeCity(city)
	list := slices.Clone(offered)
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(spelling.Distance(asked, normalizeCity(a)), spelling.Distance(asked, normalizeCity(b))),
			cmp.Compare(a, b))
	})
	list = slices.Compact(list)
	return append([]string{}, list[:min(len(list), MaxNearest)]...)
}

// normalizeCity returns the letters and digits of a code in lower case: sellers
// write one city as New-York, new_york and newyork.
func normalizeCity(code string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(code))
}
