package supply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/supply"
)

func names(sources []supply.Source) string {
	var list []string
	for _, s := range sources {
		list = append(list, s.Provider)
	}
	return strings.Join(list, " ")
}

func TestChoose(t *testing.T) {
	yes, unknown, no := supply.Condition{Ready: true, Stock: supply.StockYes}, supply.Condition{Ready: true, Stock: supply.StockUnknown},
		supply.Condition{Ready: true, Stock: supply.StockNo}
	resting, restingUnknown := supply.Condition{Stock: supply.StockYes}, supply.Condition{}
	source := func(name string, preference int, cost domain.Money) supply.Source {
		return supply.Source{Provider: name, Preference: preference, Cost: cost}
	}
	us := source("us", 0, 1)
	us.Countries = []string{"US"}
	for _, c := range []struct {
		claim   string
		sources []supply.Source
		now     map[string]supply.Condition // absent: yes
		at      session.Location
		want    string
	}{
		{"nobody sells it", nil, nil, session.Location{}, ""},
		{"the preferred first, at any cost", []supply.Source{source("b", 2, 1), source("a", 1, 9)}, nil, session.Location{}, "a b"},
		{"then who has it for certain, at any cost", []supply.Source{source("b", 1, 1), source("a", 1, 9)},
			map[string]supply.Condition{"b": unknown}, session.Location{}, "a b"},
		{"the preferred also when it may not have it", []supply.Source{source("b", 2, 1), source("a", 1, 1)},
			map[string]supply.Condition{"a": unknown}, session.Location{}, "a b"},
		{"not to tell is no yes", []supply.Source{source("b", 1, 1), source("a", 1, 9)},
			map[string]supply.Condition{"b": {Ready: true}}, session.Location{}, "a b"},
		{"then the cheapest", []supply.Source{source("c", 1, 3), source("a", 1, 1), source("b", 1, 2)}, nil, session.Location{}, "a b c"},
		{"then as they stand", []supply.Source{source("c", 1, 1), source("a", 1, 1), source("b", 1, 1)}, nil, session.Location{}, "c a b"},
		{"who has none is left out", []supply.Source{source("a", 1, 1), source("b", 2, 1)}, map[string]supply.Condition{"a": no}, session.Location{}, "b"},
		{"also as the last", []supply.Source{source("a", 1, 1)}, map[string]supply.Condition{"a": no}, session.Location{}, ""},
		{"who rests is left out when another is left", []supply.Source{source("a", 1, 1), source("b", 2, 9)},
			map[string]supply.Condition{"a": resting}, session.Location{}, "b"},
		{"and tried when nobody is", []supply.Source{source("b", 2, 1), source("a", 1, 1)},
			map[string]supply.Condition{"a": resting, "b": restingUnknown}, session.Location{}, "a b"},
		{"one that has none is nobody", []supply.Source{source("a", 1, 1), source("b", 2, 1)},
			map[string]supply.Condition{"a": no, "b": resting}, session.Location{}, "b"},
		{"nor is one that does not sell the place", []supply.Source{us, source("b", 2, 1)},
			map[string]supply.Condition{"b": resting}, session.Location{Country: "DE"}, "b"},
		{"another country is never given", []supply.Source{us}, nil, session.Location{Country: "DE"}, ""},
		{"anywhere is in a country too", []supply.Source{us}, nil, session.Location{}, "us"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got := supply.Choose(c.sources, c.at, 0, func(s supply.Source) supply.Condition {
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

func TestSourceSellsOnlyItsPlaces(t *testing.T) {
	all, listed := supply.Source{}, supply.Source{Countries: []string{"DE", "US"}, Cities: []string{"berlin"}}
	for _, c := range []struct {
		s    supply.Source
		at   session.Location
		want bool
	}{
		{all, session.Location{}, true}, {all, session.Location{Country: "FR", City: "paris"}, true},
		{listed, session.Location{}, true}, {listed, session.Location{Country: "DE"}, true}, {listed, session.Location{Country: "DE", City: "berlin"}, true},
		{listed, session.Location{Country: "FR"}, false}, {listed, session.Location{Country: "DE", City: "bonn"}, false},
		{listed, session.Location{Country: "FR", City: "berlin"}, false}, {listed, session.Location{Country: "de"}, false},
		{supply.Source{Countries: []string{}}, session.Location{Country: "US"}, false},
		{supply.Source{Cities: []string{}}, session.Location{Country: "US", City: "x"}, false},
	} {
		if got := c.s.Sells(c.at); got != c.want {
			t.Errorf("%v in %v: %v", c.s.Countries, c.at, got)
		}
	}
}

func TestCostIsThatOfTheTerm(t *testing.T) {
	s := supply.Source{Cost: 7, Costs: []supply.Term{{Days: 30, Cost: 2}, {Days: 90, Cost: 5}}}
	for days, want := range map[int]domain.Money{30: 2, 90: 5, 60: 7, 0: 7} {
		if got := s.CostFor(days); got != want {
			t.Errorf("%d days cost %d, want %d", days, got, want)
		}
	}
	cheap := supply.Source{Provider: "quarter", Costs: []supply.Term{{Days: 30, Cost: 3}, {Days: 90, Cost: 4}}}
	dear := supply.Source{Provider: "month", Costs: []supply.Term{{Days: 30, Cost: 2}, {Days: 90, Cost: 6}}}
	for days, want := range map[int]string{30: "month quarter", 90: "quarter month"} {
		got := supply.Choose([]supply.Source{cheap, dear}, session.Location{}, days, func(supply.Source) supply.Condition { return supply.Condition{Ready: true} })
		if names(got) != want {
			t.Errorf("for %d days: %s", days, names(got))
		}
	}
}

// TestChooseIsAPermutationOfWhoCanDeliver draws catalogues: nobody is invented,
// nobody who could deliver is forgotten, and no place is widened.
func TestChooseIsAPermutationOfWhoCanDeliver(t *testing.T) {
	countries := rapid.SampledFrom([][]string{nil, {}, {"US"}, {"DE", "US"}, {"JP"}})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "sources")
		var sources []supply.Source
		now := map[string]supply.Condition{}
		for i := range n {
			s := supply.Source{Provider: fmt.Sprint("p", i), Preference: rapid.IntRange(0, 2).Draw(t, "preference"),
				Cost: domain.Money(rapid.IntRange(0, 2).Draw(t, "cost")), Countries: countries.Draw(t, "countries"), Cities: countries.Draw(t, "cities")}
			sources = append(sources, s)
			now[s.Provider] = supply.Condition{Ready: rapid.Bool().Draw(t, "ready"),
				Stock: rapid.SampledFrom([]supply.Stock{"", supply.StockYes, supply.StockNo, supply.StockUnknown}).Draw(t, "stock")}
		}
		before := slices.Clone(sources)
		at := session.Location{Country: rapid.SampledFrom([]string{"", "US", "DE"}).Draw(t, "country"), City: rapid.SampledFrom([]string{"", "US"}).Draw(t, "city")}
		got := supply.Choose(sources, at, 0, func(s supply.Source) supply.Condition { return now[s.Provider] })

		var able, ready []string
		for _, s := range before {
			if s.Sells(at) && now[s.Provider].Stock != supply.StockNo {
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
