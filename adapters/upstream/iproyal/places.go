package upstream

import (
	"strings"
	"sync"
)

// otherNames are English names of countries beside those of CountryName.
var otherNames = map[string]string{
	"usa": "US", "unitedstatesofamerica": "US", "uk": "GB", "greatbritain": "GB", "uae": "AE", "korea": "KR",
	"koreasouth": "KR", "republicofkorea": "KR", "turkey": "TR", "czechrepublic": "CZ", "czechia": "CZ", "russia": "RU",
	"russianfederation": "RU", "vietnam": "VN", "macau": "MO", "hongkongsar": "HK", "holland": "NL", "ivorycoast": "CI",
	"macedonia": "MK", "moldovarepublicof": "MD", "brunei": "BN", "swaziland": "SZ",
}

var countryCodes = sync.OnceValue(func() map[string]string {
	codes := map[string]string{}
	for name, code := range otherNames {
		codes[name] = code
	}
	for _, code := range Countries {
		codes[slug(CountryName(code))] = code
	}
	return codes
})

// countryOf is the code of a country's English name; empty when it is not known.
func countryOf(name string) string { return countryCodes()[slug(name)] }

// citySlug is a city as we write it: "New York (New York)" is newyork.
func citySlug(name string) string {
	name, _, _ = strings.Cut(name, "(")
	name, _, _ = strings.Cut(name, ",")
	return slug(name)
}

// slug is the letters and digits of a name, lower case. What is not of ASCII
// stays as it is.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127 {
			return r
		}
		return -1
	}, strings.ToLower(s))
}
