package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// NearestCity returns up to five of the offered cities by edit distance to a
// refused code, without regard to case and separators, then in alphabetical
// order.
func NearestCity(city string, offered []string) []string {
	asked := normalizeCity(city)
	list := slices.Clone(offered)
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(editDistance(asked, normalizeCity(a)), editDistance(asked, normalizeCity(b))), cmp.Compare(a, b))
	})
	list = slices.Compact(list)
	return append([]string{}, list[:min(len(list), MaxNearest)]...)
}

// normalizeCity returns the letters and digits of a code in lower case: sellers
// write one city as New-York, new_york and newyork.
func normalizeCity(code string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(code))
}

// editDistance returns the Levenshtein distance of two texts in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
