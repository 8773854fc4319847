// Package country has the codes and the English names of countries.
package country

import (
	"slices"
	"strings"
)

// entry is a country.
type entry struct{ alpha2, alpha3, name string }

// Codes are the 249 officially assigned codes of ISO 3166-1 alpha-2, in upper case
// and sorted.
var Codes = codes()

// codes returns the codes of table. A table costs nothing to compile, a library of countries
// took 11 s of processor time.
func codes() []string {
	list := make([]string, len(table))
	for i, e := range table {
		list[i] = e.alpha2
	}
	return list
}

// entryOf returns the entry of one of Codes.
func entryOf(code string) (entry, bool) {
	i, ok := slices.BinarySearch(Codes, code)
	if !ok {
		return entry{}, false
	}
	return table[i], true
}

// Known reports whether Codes contains code.
func Known(code string) bool {
	_, ok := entryOf(code)
	return ok
}

// Name returns the English name of a country by its code in any case. It returns
// the code in upper case if it is not one of Codes.
func Name(code string) string {
	code = strings.ToUpper(code)
	if e, ok := entryOf(code); ok {
		return e.name
	}
	return code
}

// alpha2 has the two-letter codes by the three-letter ones.
var alpha2 = func() map[string]string {
	m := make(map[string]string, len(table))
	for _, e := range table {
		m[e.alpha3] = e.alpha2
	}
	return m
}()

// Alpha2 returns the two-letter code for a three-letter code in any case. It is
// empty for an unknown country.
func Alpha2(alpha3 string) string { return alpha2[strings.ToUpper(alpha3)] }

// Alpha3 returns the three-letter code for one of Codes. It is empty for any other.
func Alpha3(code string) string {
	e, _ := entryOf(code)
	return e.alpha3
}

// others are further names of countries in English, in lower case.
var others = map[string]string{"america": "US", "united states of america": "US", "u.s.": "US", "u.s.a.": "US",
	"uk": "GB", "great britain": "GB", "britain": "GB", "england": "GB", "holland": "NL", "czech republic": "CZ",
	"korea": "KR", "uae": "AE", "viet nam": "VN", "russian federation": "RU", "türkiye": "TR", "ivory coast": "CI"}

// Meant returns the code of the country that a text names: by its English name or its three-letter code, in any case.
// It is empty for a text that names none.
func Meant(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if code := others[text]; code != "" {
		return code
	}
	for _, e := range table {
		if strings.EqualFold(e.name, text) || strings.EqualFold(e.alpha3, text) {
			return e.alpha2
		}
	}
	return ""
}
