package exit_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentproxy/domain/exit"
)

func TestTheFirstSourceDecides(t *testing.T) {
	t.Parallel()
	var k exit.Known
	k.Add(exit.Known{Country: "TH", ASN: 7922})
	k.Add(exit.Known{Country: "LT", City: "Vilnius", ASN: 1, Network: exit.Hosting, Listed: []string{}})
	k.Add(exit.Known{City: "Kaunas", Listed: []string{"b", "a"}})
	k.Add(exit.Known{Listed: []string{"a"}})
	want := exit.Known{Country: "TH", City: "Vilnius", ASN: 7922, Network: exit.Hosting, Listed: []string{"a", "b"}, Disputed: true}
	if k.Country != want.Country || k.City != want.City || k.ASN != want.ASN || k.Network != want.Network ||
		!slices.Equal(k.Listed, want.Listed) || !k.Disputed {
		t.Errorf("got %+v, want %+v", k, want)
	}
}

func TestAddKeepsNoListOfAnother(t *testing.T) {
	t.Parallel()
	shared := []string{"b"}
	var k exit.Known
	k.Add(exit.Known{Listed: shared})
	k.Add(exit.Known{Listed: []string{"a"}})
	if !slices.Equal(shared, []string{"b"}) {
		t.Errorf("the list of the source is %v now", shared)
	}
}

func TestAgreed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		measured, sold string
		disputed       bool
		agreed, known  bool
	}{
		"nothing is known":                            {},
		"nothing measured the country":                {sold: "US"},
		"measured, and no country was sold":           {measured: "US"},
		"measured as it was sold":                     {measured: "US", sold: "US", agreed: true, known: true},
		"measured elsewhere":                          {measured: "LT", sold: "TH", known: true},
		"two sources differ":                          {measured: "US", sold: "US", disputed: true, known: true},
		"two sources differ, and no country was sold": {measured: "US", disputed: true, known: true},
	} {
		m := exit.Measured{Declared: c.sold, Known: exit.Known{Country: c.measured, Disputed: c.disputed}}
		if agreed, known := m.Agreed(); agreed != c.agreed || known != c.known {
			t.Errorf("%s: %v, %v", name, agreed, known)
		}
	}
}

func TestRisk(t *testing.T) {
	t.Parallel()
	none := []string{}
	for name, c := range map[string]struct {
		known exit.Known
		sold  string
		want  int // -1: not known
	}{
		"nothing is known":                  {want: -1},
		"a place alone is no risk":          {known: exit.Known{Country: "LT"}, sold: "TH", want: -1},
		"a household on no list":            {known: exit.Known{Network: exit.Residential, Listed: none}, want: 0},
		"a phone":                           {known: exit.Known{Network: exit.Mobile}, want: 0},
		"an access provider":                {known: exit.Known{Network: exit.ISP}, want: 5},
		"a data centre":                     {known: exit.Known{Network: exit.Hosting}, want: 20},
		"on no list, network not known":     {known: exit.Known{Listed: none}, want: 0},
		"on one list":                       {known: exit.Known{Listed: []string{"a"}}, want: 40},
		"on two lists":                      {known: exit.Known{Listed: []string{"a", "b"}}, want: 55},
		"on three lists":                    {known: exit.Known{Listed: []string{"a", "b", "c"}}, want: 70},
		"on ten lists":                      {known: exit.Known{Listed: strings.Split("abcdefghij", "")}, want: 70},
		"not where it was sold":             {known: exit.Known{Network: exit.Residential, Country: "LT"}, sold: "TH", want: 10},
		"where it was sold":                 {known: exit.Known{Network: exit.Residential, Country: "TH"}, sold: "TH", want: 0},
		"everything at once is the maximum": {known: exit.Known{Network: exit.Hosting, Country: "LT", Listed: strings.Split("abc", "")}, sold: "TH", want: 100},
	} {
		got, known := exit.Measured{Known: c.known, Declared: c.sold}.Risk()
		if want := max(c.want, 0); got != want || known != (c.want >= 0) {
			t.Errorf("%s: risk %d, known %v, want %d", name, got, known, c.want)
		}
	}
}

// Whatever is known, the risk stays in its bounds, and one list more never lowers it.
func TestRiskRisesWithEachList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		country := rapid.SampledFrom([]string{"", "US", "LT"})
		m := exit.Measured{Declared: country.Draw(t, "sold"), Known: exit.Known{
			Country: country.Draw(t, "country"), Disputed: rapid.Bool().Draw(t, "disputed"),
			Network: rapid.SampledFrom(append(exit.Networks, "")).Draw(t, "network")}}
		before := 0
		for _, label := range []string{"a", "b", "c", "d", "e", "f"} {
			m.Add(exit.Known{Listed: []string{label}})
			risk, known := m.Risk()
			if !known || risk < before || risk > 100 {
				t.Fatalf("risk %d after %d with %+v", risk, before, m.Known)
			}
			before = risk
		}
	})
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"192.0.2.1": 4, "::ffff:192.0.2.1": 4, "2001:db8::1": 6} {
		if got := (exit.Measured{IP: netip.MustParseAddr(text)}).Version(); got != want {
			t.Errorf("%s: version %d, want %d", text, got, want)
		}
	}
}
