package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// NearestCity gives up to five of the offered cities that a refused code may
// have meant: first the same letters and digits in another case or with other
// separators, then the fewest letters to change, then the alphabet.
func NearestCity(city string, offered []string) []string {
	asked := normalizeCity(city)
	list := slices.Clone(offered)
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(editDistance(asked, normalizeCity(a)), editDistance(asked, normalizeCity(b))), cmp.Compare(a, b))
	})
	list = slices.Compact(list)
	return append([]string{}, list[:min(len(list), MaxNearest)]...)
}

// plainCity leaves the letters and digits of a code, in lower case: sellers
// write one city as New-York, new_york and newyork.
func normalizeCity(code string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(code))
}

// edits is how many letters must be put in, left out or exchanged to make one
// text of the other.
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
