// Package country has the codes and the English names of countries.
package country

import (
	"slices"
	"strings"

	"github.com/biter777/countries"
)

// Codes are the 249 officially assigned codes of ISO 3166-1 alpha-2, in upper case
// and sorted.
var Codes = isoCodes()

// notAssigned are codes that the library lists beside the assigned ones: two of
// countries that no longer exist, and one in common use.
var notAssigned = []string{"AN", "XK", "YU"}

// renamed has the common English names of countries that the library lists in an
// older or longer form.
var renamed = map[string]string{
	"AX": "Åland Islands", "BL": "Saint Barthélemy", "BQ": "Bonaire, Sint Eustatius and Saba",
	"CD": "Congo (Democratic Republic)", "CI": "Côte d'Ivoire", "CV": "Cabo Verde", "CW": "Curaçao",
	"FK": "Falkland Islands", "FM": "Micronesia", "HK": "Hong Kong", "IM": "Isle of Man", "IR": "Iran",
	"KP": "North Korea", "KR": "South Korea", "LA": "Laos", "LY": "Libya", "MD": "Moldova",
	"MF": "Saint Martin (French part)", "MK": "North Macedonia", "MO": "Macao", "PS": "Palestine",
	"RE": "Réunion", "SX": "Sint Maarten (Dutch part)", "SY": "Syria", "SZ": "Eswatini", "TL": "Timor-Leste",
	"TR": "Türkiye", "TW": "Taiwan", "TZ": "Tanzania", "VA": "Vatican City",
	"VG": "Virgin Islands (British)", "VI": "Virgin Islands (U.S.)",
}

func isoCodes() []string {
	var codes []string
	for _, c := range countries.All() {
		if code := c.Alpha2(); !slices.Contains(notAssigned, code) {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

// Known reports whether Codes contains code.
func Known(code string) bool {
	_, ok := slices.BinarySearch(Codes, code)
	return ok
}

// Name returns the English name of a country by its code in any case. It returns
// the code in upper case if it is not one of Codes.
func Name(code string) string {
	code = strings.ToUpper(code)
	if name, ok := renamed[code]; ok {
		return name
	}
	if !Known(code) {
		return code
	}
	return countries.ByName(code).String()
}

// Alpha2 returns the two-letter code for a three-letter code in any case. It is
// empty for an unknown country.
func Alpha2(alpha3 string) string {
	code := countries.ByName(strings.ToUpper(alpha3)).Alpha2()
	if len(alpha3) != 3 || !Known(code) {
		return ""
	}
	return code
}

// Alpha3 returns the three-letter code for one of Codes. It is empty for any other.
func Alpha3(code string) string {
	if !Known(code) {
		return ""
	}
	return countries.ByName(code).Alpha3()
}
