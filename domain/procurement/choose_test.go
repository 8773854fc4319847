package procurement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

func names(sources []procurement.Source) string {
	var list []string
	for _, s := range sources {
		list = append(list, s.Provider)
	}
	return strings.Join(list, " ")
}

func TestChoose(t *testing.T) {
	yes, unknown, no := procurement.Condition{Ready: true, Stock: procurement.StockYes}, procurement.Condition{Ready: true, Stock: procurement.StockUnknown},
		procurement.Condition{Ready: true, Stock: procurement.StockNo}
	resting, restingUnknown := procurement.Condition{Stock: procurement.StockYes}, procurement.Condition{}
	source := func(name string, preference int, cost domain.Money) procurement.Source {
		return procurement.Source{Provider: name, Preference: preference, Cost: cost}
	}
	us := source("us", 0, 1)
	us.Countries = []string{"US"}
	for _, c := range []struct {
		claim   string
		sources []procurement.Source
		now     map[string]procurement.Condition // absent: yes
		at      session.Location
		want    string
	}{
		{"no source sells it", nil, nil, session.Location{}, ""},
		{"the preferred first, at any cost", []procurement.Source{source("b", 2, 1), source("a", 1, 9)}, nil, session.Location{}, "a b"},
		{"then who has it for certain, at any cost", []procurement.Source{source("b", 1, 1), source("a", 1, 9)},
			map[string]procurement.Condition{"b": unknown}, session.Location{}, "a b"},
		{"the preferred also when it may not have it", []procurement.Source{source("b", 2, 1), source("a", 1, 1)},
			map[string]procurement.Condition{"a": unknown}, session.Location{}, "a b"},
		{"unreported stock is not stock", []procurement.Source{source("b", 1, 1), source("a", 1, 9)},
			map[string]procurement.Condition{"b": {Ready: true}}, session.Location{}, "a b"},
		{"then the cheapest", []procurement.Source{source("c", 1, 3), source("a", 1, 1), source("b", 1, 2)}, nil, session.Location{}, "a b c"},
		{"then in their order", []procurement.Source{source("c", 1, 1), source("a", 1, 1), source("b", 1, 1)}, nil, session.Location{}, "c a b"},
		{"who has none is left out", []procurement.Source{source("a", 1, 1), source("b", 2, 1)}, map[string]procurement.Condition{"a": no}, session.Location{}, "b"},
		{"also as the last", []procurement.Source{source("a", 1, 1)}, map[string]procurement.Condition{"a": no}, session.Location{}, ""},
		{"who rests is left out when another is left", []procurement.Source{source("a", 1, 1), source("b", 2, 9)},
			map[string]procurement.Condition{"a": resting}, session.Location{}, "b"},
		{"and tried when no other is", []procurement.Source{source("b", 2, 1), source("a", 1, 1)},
			map[string]procurement.Condition{"a": resting, "b": restingUnknown}, session.Location{}, "a b"},
		{"one that has none is left out", []procurement.Source{source("a", 1, 1), source("b", 2, 1)},
			map[string]procurement.Condition{"a": no, "b": resting}, session.Location{}, "b"},
		{"nor is one that does not sell the place", []procurement.Source{us, source("b", 2, 1)},
			map[string]procurement.Condition{"b": resting}, session.Location{Country: "DE"}, "b"},
		{"another country is never given", []procurement.Source{us}, nil, session.Location{Country: "DE"}, ""},
		{"anywhere is in a country too", []procurement.Source{us}, nil, session.Location{}, "us"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got := procurement.Choose(c.sources, c.at, 0, func(s procurement.Source) procurement.Condition {
				if now, ok := c.now[s.Provider]; ok {
					return now
				}
				return yes
			})
			if names(got) != c.want {
				t.Errorf("got %q, want %q", names(got), c.want)
			}
		})
	}
}

func TestChooseKeepsTheCatalogueOfEquals(t *testing.T) {
	var sources []procurement.Source
	for i := range 60 { // a sort of few keeps their order by chance
		sources = append(sources, procurement.Source{Provider: fmt.Sprint("p", i), Preference: i % 2})
	}
	got := procurement.Choose(sources, session.Location{}, 0, func(procurement.Source) procurement.Condition { return procurement.Condition{Ready: true} })
	for i, s := range got {
		if want := fmt.Sprint("p", i%30*2+i/30); s.Provider != want {
			t.Fatalf("%d is %s, want %s", i, s.Provider, want)
		}
	}
}

func TestSourceSellsOnlyItsPlaces(t *testing.T) {
	all, listed := procurement.Source{}, procurement.Source{Countries: []string{"DE", "US"}, Cities: []string{"berlin"}}
	for _, c := range []struct {
		s    procurement.Source
		at   session.Location
		want bool
	}{
		{all, session.Location{}, true}, {all, session.Location{Country: "FR", City: "paris"}, true},
		{listed, session.Location{}, true}, {listed, session.Location{Country: "DE"}, true}, {listed, session.Location{Country: "DE", City: "berlin"}, true},
		{listed, session.Location{Country: "FR"}, false}, {listed, session.Location{Country: "DE", City: "bonn"}, false},
		{listed, session.Location{Country: "FR", City: "berlin"}, false}, {listed, session.Location{Country: "de"}, false},
		{procurement.Source{Countries: []string{}}, session.Location{Country: "US"}, false},
		{procurement.Source{Cities: []string{}}, session.Location{Country: "US", City: "x"}, false},
	} {
		if got := c.s.Sells(c.at); got != c.want {
			t.Errorf("%v in %v: %v", c.s.Countries, c.at, got)
		}
	}
}

func TestCostIsThatOfTheTerm(t *testing.T) {
	s := procurement.Source{Cost: 7, Costs: []procurement.Term{{Days: 30, Cost: 2}, {Days: 90, Cost: 5}}}
	for days, want := range map[int]domain.Money{30: 2, 90: 5, 60: 7, 0: 7} {
		if got := s.CostFor(days); got != want {
			t.Errorf("%d days cost %d, want %d", days, got, want)
		}
	}
	cheap := procurement.Source{Provider: "quarter", Costs: []procurement.Term{{Days: 30, Cost: 3}, {Days: 90, Cost: 4}}}
	dear := procurement.Source{Provider: "month", Costs: []procurement.Term{{Days: 30, Cost: 2}, {Days: 90, Cost: 6}}}
	for days, want := range map[int]string{30: "month quarter", 90: "quarter month"} {
		got := procurement.Choose([]procurement.Source{cheap, dear}, session.Location{}, days, func(procurement.Source) procurement.Condition { return procurement.Condition{Ready: true} })
		if names(got) != want {
			t.Errorf("for %d days: %s", days, names(got))
		}
	}
}

// TestChooseIsAPermutationOfWhoCanDeliver draws catalogues: no source is added,
// none that can deliver is lost, and no place is widened.
func TestChooseIsAPermutationOfWhoCanDeliver(t *testing.T) {
	countries := rapid.SampledFrom([][]string{nil, {}, {"US"}, {"DE", "US"}, {"JP"}})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "sources")
		var sources []procurement.Source
		now := map[string]procurement.Condition{}
		for i := range n {
			s := procurement.Source{Provider: fmt.Sprint("p", i), Preference: rapid.IntRange(0, 2).Draw(t, "preference"),
				Cost: domain.Money(rapid.IntRange(0, 2).Draw(t, "cost")), Countries: countries.Draw(t, "countries"), Cities: countries.Draw(t, "cities")}
			sources = append(sources, s)
			now[s.Provider] = procurement.Condition{Ready: rapid.Bool().Draw(t, "ready"),
				Stock: rapid.SampledFrom([]procurement.Stock{"", procurement.StockYes, procurement.StockNo, procurement.StockUnknown}).Draw(t, "stock")}
		}
		before := slices.Clone(sources)
		at := session.Location{Country: rapid.SampledFrom([]string{"", "US", "DE"}).Draw(t, "country"), City: rapid.SampledFrom([]string{"", "US"}).Draw(t, "city")}
		got := procurement.Choose(sources, at, 0, func(s procurement.Source) procurement.Condition { return now[s.Provider] })

		var able, ready []string
		for _, s := range before {
			if s.Sells(at) && now[s.Provider].Stock != procurement.StockNo {
				able = append(able, s.Provider)
				if now[s.Provider].Ready {
					ready = append(ready, s.Provider)
				}
			}
		}
		want := able
		if len(ready) > 0 {
			want = ready
		}
		chosen := strings.Fields(names(got))
		slices.Sort(chosen)
		if fmt.Sprint(chosen) != fmt.Sprint(append([]string{}, want...)) {
			t.Fatalf("chosen %v of %v", chosen, want)
		}
		for i, s := range got {
			if at.Country != "" && s.Countries != nil && !slices.Contains(s.Countries, at.Country) {
				t.Fatalf("%s does not sell %s", s.Provider, at.Country)
			}
			if i > 0 && got[i-1].Preference > s.Preference {
				t.Fatalf("%s comes before %s", got[i-1].Provider, s.Provider)
			}
		}
		if names(before) != names(sources) {
			t.Fatal("the catalogue was changed")
		}
	})
}
