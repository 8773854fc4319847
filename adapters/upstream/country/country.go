package upstream

import (
	"slices"
	"strings"

	"github.com/biter777/countries"
)

// Countries are the 249 officially assigned codes of ISO 3166-1 alpha-2, upper
// case, sorted.
var Countries = isoCountries()

// notAssigned are codes that the library lists beside the assigned ones: two of
// countries that no longer exist, and one that users agreed on.
var notAssigned = []string{"AN", "XK", "YU"}

// renamed are names that the library has in an older or an awkward form; these
// are the common English ones.
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

func isoCountries() []string {
	var codes []string
	for _, c := range countries.All() {
		if code := c.Alpha2(); !slices.Contains(notAssigned, code) {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

// CountryName is the English name of a country code in any case; the code
// itself when it is not one of Countries.
func CountryName(code string) string {
	code = strings.ToUpper(code)
	if name, ok := renamed[code]; ok {
		return name
	}
	if _, ok := slices.BinarySearch(Countries, code); !ok {
		return code
	}
	return countries.ByName(code).String()
}
