package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Regions lists the countries that the products are sold in, by code. It calls
// name for the name of a code. Cities are the codes that can be ordered there;
// if a country has none, any city code is accepted.
func Regions(products []Product, name func(code string) string) []Region {
	byCode := map[string]*Region{}
	for _, p := range products {
		for _, code := range p.Countries {
			r := byCode[code]
			if r == nil {
				r = &Region{Code: code, Name: name(code)}
				byCode[code] = r
			}
			r.Cities = append(r.Cities, p.CitiesIn(code)...)
			if !slices.Contains(r.Types, p.Type) {
				r.Types = append(r.Types, p.Type)
			}
		}
	}
	regions := make([]Region, 0, len(byCode))
	for _, code := range slices.Sorted(maps.Keys(byCode)) {
		r := byCode[code]
		slices.Sort(r.Cities)
		r.Cities = slices.Compact(r.Cities)
		slices.Sort(r.Types)
		regions = append(regions, *r)
	}
	return regions
}

// Terms returns the bounds that the product sets to a create call.
func (p Product) Terms() session.Terms {
	days := make([]int, len(p.Durations))
	for i, d := range p.Durations {
		days[i] = d.Days
	}
	return session.Terms{Type: p.Type, Days: days, Countries: p.Countries, Cities: p.Cities,
		MinQuantity: p.MinQuantity, MaxQuantity: p.MaxQuantity, MinBytes: p.MinBytes, MaxBytes: p.MaxBytes,
		StepBytes: p.Step(), Sells: p.SellsPlace,
		Nearest:     func(country string) []string { return Nearest(country, p.Countries) },
		NearestCity: func(country, city string) []string { return NearestCity(city, p.CitiesIn(country)) }}
}

// SellsPlace reports whether one source of the product has both the country and
// the city; either may be empty.
func (p Product) SellsPlace(l session.Location) bool {
	return slices.ContainsFunc(p.Sources, func(s procurement.Source) bool { return s.Sells(l) })
}

// CitiesIn lists the cities that the product is sold in within a country, each
// once, sorted. An empty country selects all. It returns nil if the product
// lists no cities.
func (p Product) CitiesIn(country string) []string {
	var in []string
	for _, city := range p.Cities {
		if p.SellsPlace(session.Location{Country: country, City: city}) {
			in = append(in, city)
		}
	}
	slices.Sort(in)
	return slices.Compact(in)
}

// commonMistakes maps codes that ISO 3166-1 assigns to no country, such as
// codes of languages, domains and cars, to the country that is usually meant.
var commonMistakes = map[string]string{
	"CS": "CZ", "DA": "DK", "EL": "GR", "EN": "GB", "FX": "FR", "HI": "IN", "JA": "JP", "KO": "KR", "SU": "RU",
	"TP": "TL", "UK": "GB", "YU": "RS", "ZH": "CN",
}

// Nearest returns up to five of the offered countries, the likeliest first: the one that is named, the
// usual meaning of a wrong code, the two letters swapped, the same first
// letter, the same second letter. It returns none rather than one that is like no other.
func Nearest(asked string, offered []string) []string {
	if code := country.Meant(asked); slices.Contains(offered, code) {
		return []string{code}
	} else if code != "" {
		return []string{} // another country is not nearer to it
	}
	asked = strings.ToUpper(asked)
	list := []string{}
	for _, code := range offered {
		if mistakeRank(asked, code) < unlike {
			list = append(list, code)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(mistakeRank(asked, a), mistakeRank(asked, b)), cmp.Compare(a, b))
	})
	list = slices.Compact(list)
	return list[:min(len(list), MaxNearest)]
}

// unlike is the rank of what was hardly meant.
const unlike = 4

// mistakeRank ranks how likely asked was written for offered; 0 is the
// likeliest.
func mistakeRank(asked, offered string) int {
	switch {
	case commonMistakes[asked] == offered:
		return 0
	case len(asked) != 2 || len(offered) != 2:
		return unlike
	case asked[0] == offered[1] && asked[1] == offered[0]:
		return 1
	case asked[0] == offered[0]:
		return 2
	case asked[1] == offered[1]:
		return 3
	}
	return unlike
}
