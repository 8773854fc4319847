package workers

import (
	"slices"
	"strings"

	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

// place returns where a worker of a session is to leave: what the session was bought for, narrowed by
// what is asked for. It returns worker.ErrParameter for what was not bought or is not sold.
func (u *Service) place(s session.Session, country, city string) (session.Location, error) {
	l := s.Location
	country = strings.ToUpper(country)
	if country != "" && l.Country != "" && country != l.Country {
		return l, refused("country-"+strings.ToLower(country), "is not what the session was bought for: "+l.Country+" is")
	}
	if city != "" && l.City != "" && !worker.SameCity(city, l.City) {
		return l, refused("city-"+city, "is not what the session was bought for: "+l.City+" is")
	}
	product, _ := u.catalog.Product(s.ProductNo) // one that is not sold any more sells no narrower place
	if country != "" && l.Country == "" {
		l.Country = country
		if !sells(product, s.Provider, l) {
			return l, refused("country-"+strings.ToLower(country), "is not sold with the product of this session")
		}
	}
	if city == "" || l.City != "" {
		return l, nil
	}
	if l.City = spelled(product, city); !sells(product, s.Provider, l) {
		return l, refused("city-"+city, "is not sold with the product of this session")
	}
	return l, nil
}

// sells reports whether a product is sold in a place from a provider.
func sells(p catalog.Product, provider string, l session.Location) bool {
	if !slices.Contains(p.Countries, l.Country) ||
		l.City != "" && len(p.Cities) > 0 && !slices.Contains(p.Cities, l.City) {
		return false
	}
	for _, from := range p.Sources {
		if from.Provider == provider && from.Sells(l) {
			return true
		}
	}
	return false
}

// spelled returns a city as the product lists it, or as it is.
func spelled(p catalog.Product, city string) string {
	for _, listed := range p.Cities {
		if worker.SameCity(listed, city) {
			return listed
		}
	}
	return city
}

// refused returns worker.ErrParameter for a word, with the grammar.
func refused(word, issue string) error {
	return worker.ErrParameter.Msgf("%s", (&worker.ParameterError{Word: `"` + word + `"`, Issue: issue}).HowToFix())
}
