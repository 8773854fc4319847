package catalog_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

func TestNearestCity(t *testing.T) {
	world := []string{"berlin", "bern", "frankfurt", "los_angeles", "lyon", "newyork", "paris", "paris"}
	for asked, want := range map[string]string{
		"New-York":   "newyork bern lyon berlin paris", // another seller's way of writing it
		"losangeles": "los_angeles",
		"berln":      "berlin bern",
		"Lyons":      "lyon",
		"pariss":     "paris",
	} {
		got := strings.Join(catalog.NearestCity(asked, world), " ")
		if got != want && !strings.HasPrefix(got, want+" ") {
			t.Errorf("%s: got %s, want %s", asked, got, want)
		}
		if n := len(catalog.NearestCity(asked, world)); n != catalog.MaxNearest {
			t.Errorf("%s: %d alternatives", asked, n)
		}
	}
	if got := catalog.NearestCity("x", nil); got == nil || len(got) != 0 {
		t.Errorf("of none it names %#v, want an empty list", got)
	}
	if world[0] != "berlin" || world[7] != "paris" {
		t.Error("the caller's list was changed")
	}
}

// placed is a product of two sources: one has two cities of the US, the other
// one of Germany and all of its cities in France, which is none.
func placed() catalog.Product {
	return changed(dynamic("dyn", domain.Dollar, "DE", "FR", "US"), func(p *catalog.Product) {
		p.Cities = []string{"newyork", "miami", "berlin"}
		p.Sources = []procurement.Source{
			{Provider: "p", Countries: []string{"US"}, Cities: []string{"newyork", "miami"}},
			{Provider: "q", Countries: []string{"DE"}, Cities: []string{"berlin"}},
			{Provider: "q", Countries: []string{"FR"}, Cities: []string{}},
		}
	})
}

func TestAPlaceIsNeverWidened(t *testing.T) {
	p := placed()
	if err := catalog.Check([]catalog.Product{p}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		claim, country, city string
		field                string // of the fault; empty: accepted
		nearest              []string
	}{
		{"anywhere", "", "", "", nil},
		{"a country", "FR", "", "", nil},
		{"a city of a country", "us", "miami", "", nil},
		{"a city alone", "", "berlin", "", nil},
		{"a city of another country", "DE", "newyork", "city", []string{"berlin"}},
		{"a city in a country whose source has none", "FR", "berlin", "city", []string{}},
		{"a city that is listed nowhere", "US", "new_york", "city", []string{"newyork", "miami"}},
		{"a city that is listed nowhere, without a country", "", "Berlin", "city", []string{"berlin", "miami", "newyork"}},
		{"a country that is not sold", "ED", "berlin", "country", []string{"DE"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			f := session.CreateRequest{Type: "dynamic", ProductNo: "dyn", Location: session.Location{Country: c.country, City: c.city}}
			s, err := f.Check()
			if err != nil {
				t.Fatal(err)
			}
			s, err = p.Terms().Check(s)
			if c.field == "" {
				if err != nil || s.Location != (session.Location{Country: strings.ToUpper(c.country), City: c.city}) {
					t.Errorf("got %+v, %v", s.Location, err)
				}
				return
			}
			wantFields(t, err, c.field)
			e, _ := errors.AsType[*domain.Error](err)
			if got, _ := e.Details["nearest"].([]string); !reflect.DeepEqual(got, c.nearest) {
				t.Errorf("nearest %#v, want %#v", e.Details["nearest"], c.nearest)
			}
		})
	}
	t.Run("a country that no source has is refused though the product lists it", func(t *testing.T) {
		p := placed()
		p.Sources = p.Sources[:2]
		f := session.CreateRequest{Type: "dynamic", ProductNo: "dyn", Location: session.Location{Country: "FR"}}
		s, _ := f.Check()
		_, err := p.Terms().Check(s)
		wantFields(t, err, "country")
	})
}

func TestRegionsListTheCitiesOfTheirCountry(t *testing.T) {
	cities := map[string][]string{}
	for _, r := range catalog.Regions([]catalog.Product{placed()}, strings.ToLower) {
		cities[r.Code] = r.Cities
	}
	if !slices.Equal(cities["US"], []string{"miami", "newyork"}) || !slices.Equal(cities["DE"], []string{"berlin"}) || len(cities["FR"]) != 0 {
		t.Errorf("got %v", cities)
	}
}
