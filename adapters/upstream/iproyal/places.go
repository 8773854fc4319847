package iproyal

import (
	"strings"
	"sync"

	"agentproxy/domain/country"
)

// otherNames are English names of countries beside those of country.Name.
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
	for _, code := range country.Codes {
		codes[slug(country.Name(code))] = code
	}
	return codes
})

// countryOf returns the code of a country by its English name; it is empty for an
// unknown name.
func countryOf(name string) string { return countryCodes()[slug(name)] }

// citySlug returns a city as sessions spell it: "New York (New York)" is newyork.
func citySlug(name string) string {
	name, _, _ = strings.Cut(name, "(")
	name, _, _ = strings.Cut(name, ",")
	return slug(name)
}

// slug returns the letters and digits of a name in lower case. Characters beyond ASCII
// are kept as they are.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127 {
			return r
		}
		return -1
	}, strings.ToLower(s))
}
