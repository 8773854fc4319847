// Package spelling compares misspelt names with known ones.
package spelling

import (
	"strings"
	"unicode"
)

// NearMiss reports whether one insertion, deletion or substitution of a byte, or one
// transposition of two neighbours, turns name into known. Equal texts are no near miss.
func NearMiss[T string | []byte](name T, known string) bool {
	if len(name)-len(known) > 1 || len(known)-len(name) > 1 {
		return false
	}
	i := 0
	for i < len(name) && i < len(known) && name[i] == known[i] {
		i++
	}
	a, b := string(name[i:]), known[i:]
	switch {
	case len(a) < len(b):
		return a == b[1:]
	case len(a) > len(b):
		return a[1:] == b
	case a == "":
		return false
	}
	return a[1:] == b[1:] || len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
}

// Fold returns a name in lower case and without _ and -: maxCost, Max-Cost and max_cost are one name.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// Meant returns the name among known that another name is probably a misspelling of: one that is equal
// folded, or else a near miss folded. It returns "" for none.
func Meant(name string, known []string) string {
	name = Fold(name)
	for _, k := range known {
		if Fold(k) == name {
			return k
		}
	}
	for _, k := range known {
		if NearMiss(name, Fold(k)) {
			return k
		}
	}
	return ""
}

// Distance returns the Levenshtein distance of two texts in bytes. It takes time in proportion to
// the product of their lengths, so the caller bounds them.
func Distance(a, b string) int {
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
