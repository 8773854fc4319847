package catalog_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

func dynamic(no string, price domain.Money, countries ...string) catalog.Product {
	return catalog.Product{No: no, Name: no, Type: session.Dynamic, Sources: []procurement.Source{{Provider: "p"}}, Price: price, Countries: countries,
		MinQuantity: 1, MaxQuantity: 1, MinBytes: billing.GB / 10, MaxBytes: 1000 * billing.GB, Available: true}
}

func static(no string, price domain.Money, countries ...string) catalog.Product {
	return catalog.Product{No: no, Name: no, Type: session.Static, Sources: []procurement.Source{{Provider: "p"}}, Countries: countries,
		Durations:   []catalog.Duration{{Days: 30, Price: price}, {Days: 90, Price: 2 * price}},
		MinQuantity: 1, MaxQuantity: 100, Available: true}
}

func changed(p catalog.Product, change func(*catalog.Product)) catalog.Product {
	change(&p)
	return p
}

// testProducts is a catalogue that Check accepts.
func testProducts() []catalog.Product {
	return []catalog.Product{
		changed(dynamic("dyn_slow", domain.Dollar/4, "DE", "FR", "US"), func(p *catalog.Product) { p.Async = true }),
		dynamic("dyn_fast", domain.Dollar*2/5, "DE", "US"),
		static("sta_isp", domain.Dollar, "DE", "FR"),
		changed(static("sta_city", domain.Dollar*3/2, "DE", "JP"), func(p *catalog.Product) { p.Cities = []string{"TYO", "BER"} }),
		changed(static("sta_gone", domain.Dollar, "BR"), func(p *catalog.Product) { p.Available = false }),
	}
}

func numbers(products []catalog.Product) string {
	var out []string
	for _, p := range products {
		out = append(out, p.No)
	}
	return strings.Join(out, " ")
}

func TestFilter(t *testing.T) {
	for _, c := range []struct {
		claim, typ, country string
		available           bool
		want                string
	}{
		{"no filter passes everything, in its order", "", "", false, "dyn_slow dyn_fast sta_isp sta_city sta_gone"},
		{"all is no filter", "all", "", false, "dyn_slow dyn_fast sta_isp sta_city sta_gone"},
		{"by type", "static", "", false, "sta_isp sta_city sta_gone"},
		{"by country in any case", "", "fr", false, "dyn_slow sta_isp"},
		{"only what is available", "static", "", true, "sta_isp sta_city"},
		{"all three together", "dynamic", "US", true, "dyn_slow dyn_fast"},
		{"a country that nothing is sold in is an empty list", "", "ZZ", false, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			f, err := catalog.NewFilter(c.typ, c.country, c.available)
			if err != nil {
				t.Fatal(err)
			}
			if got := numbers(f.Apply(testProducts())); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("every fault of a query is named", func(t *testing.T) {
		_, err := catalog.NewFilter("Static", "DEU", false)
		wantFields(t, err, "type", "country_code")
		_, err = catalog.NewFilter("", "1é", false)
		wantFields(t, err, "country_code")
	})
}

func wantFields(t *testing.T, err error, want ...string) {
	t.Helper()
	var e *domain.Error
	if !errors.As(err, &e) || !errors.Is(err, domain.ErrInvalid) {
		t.Fatalf("error %v, want INVALID_REQUEST", err)
	}
	var got []string
	for _, issue := range e.Details["fields"].([]domain.FieldIssue) {
		got = append(got, issue.Field)
	}
	if !slices.Equal(got, want) {
		t.Errorf("faults in %v, want %v", got, want)
	}
}

func TestRegions(t *testing.T) {
	got := catalog.Regions(testProducts(), func(code string) string { return "<" + code + ">" })
	var lines []string
	for _, r := range got {
		line := r.Code + r.Name + strings.Join(r.Cities, ",")
		for _, typ := range r.Types {
			line += " " + string(typ)
		}
		lines = append(lines, line)
	}
	want := []string{"BR<BR> static", "DE<DE>BER,TYO dynamic static", "FR<FR> dynamic static", "JP<JP>BER,TYO static", "US<US> dynamic"}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	if none := catalog.Regions(nil, strings.ToLower); len(none) != 0 {
		t.Errorf("no product, and yet %v", none)
	}
}

func TestNearest(t *testing.T) {
	world := []string{"AT", "AU", "CN", "CZ", "DE", "DK", "ES", "FR", "GB", "GE", "GR", "JP", "KR", "RU", "SE", "UA", "US"}
	for asked, want := range map[string]string{
		"UK": "GB",
		"uk": "GB",
		"EN": "GB ES CN", // what it is written for, the first letter, the second
		"ED": "DE ES",    // swapped
		"JA": "JP UA",
		"QQ": "",

		"Germany": "DE", "GERMANY ": "DE", "DEU": "DE", "deu": "DE", "USA": "US", "United States": "US", "Great Britain": "GB",
		"Atlantis": "", "CHE": "", "Italy": "", // Switzerland and Italy are not offered
	} {
		if got := strings.Join(catalog.Nearest(asked, world), " "); got != want {
			t.Errorf("%s: got %s, want %s", asked, got, want)
		}
	}
	if got := catalog.Nearest("UK", []string{"FR", "DE"}); got == nil || len(got) != 0 {
		t.Errorf("of two offered countries it names %v", got)
	}
	if got := catalog.Nearest("UK", nil); len(got) != 0 {
		t.Errorf("of none it names %v", got)
	}
	if !slices.IsSorted(world) {
		t.Error("the caller's list was changed")
	}
}

func TestCheck(t *testing.T) {
	if err := catalog.Check(testProducts()); err != nil {
		t.Fatalf("a good catalogue is refused: %v", err)
	}
	good := testProducts()
	dyn, sta := good[0], good[2]
	for _, c := range []struct {
		claim, want string
		product     catalog.Product
	}{
		{"a code with a space", "code must", changed(dyn, func(p *catalog.Product) { p.No = "a b" })},
		{"a code that is missing", "code must", changed(dyn, func(p *catalog.Product) { p.No = "" })},
		{"a code that is used", "used twice", changed(dyn, func(p *catalog.Product) { p.No = "dyn_fast" })},
		{"no name", "name is missing", changed(dyn, func(p *catalog.Product) { p.Name = "" })},
		{"no source", "sources are missing", changed(dyn, func(p *catalog.Product) { p.Sources = nil })},
		{"a source without a provider", "provider of a source", changed(dyn, func(p *catalog.Product) { p.Sources = []procurement.Source{{}} })},
		{"a source of two words", "provider of a source", changed(dyn, func(p *catalog.Product) { p.Sources = []procurement.Source{{Provider: "a b"}} })},
		{"a source with countries in disorder", "countries of a source", changed(dyn, func(p *catalog.Product) {
			p.Sources = []procurement.Source{{Provider: "p", Countries: []string{"US", "FR", "DE"}}}
		})},
		{"a country that no source has", `no source has the country "FR"`, changed(dyn, func(p *catalog.Product) {
			p.Sources = []procurement.Source{{Provider: "p", Countries: []string{"DE"}}, {Provider: "q", Countries: []string{"US"}}}
		})},
		{"a city that no source has", `no source has the city "BER"`, changed(dyn, func(p *catalog.Product) {
			p.Cities, p.Sources = []string{"BER"}, []procurement.Source{{Provider: "p", Cities: []string{}}}
		})},
		{"an unknown type", "type must", changed(dyn, func(p *catalog.Product) { p.Type = "Dynamic" })},
		{"a free GB", "price of a GB", changed(dyn, func(p *catalog.Product) { p.Price = 0 })},
		{"a price out of bounds", "price of a GB", changed(dyn, func(p *catalog.Product) { p.Price = catalog.MaxPrice + 1 })},
		{"no least traffic", "bounded", changed(dyn, func(p *catalog.Product) { p.MinBytes = 0 })},
		{"least above most", "bounded", changed(dyn, func(p *catalog.Product) { p.MaxBytes = p.MinBytes - 1 })},
		{"more than can be asked for", "bounded", changed(dyn, func(p *catalog.Product) { p.MaxBytes = math.MaxInt64 })},
		{"a bound with four decimals", "3 decimals", changed(dyn, func(p *catalog.Product) { p.MinBytes = 100_100_000 })},
		{"a bound between two caps", "multiples of 1 GB", changed(dyn, func(p *catalog.Product) { p.StepBytes = billing.GB })},
		{"a dynamic product with durations", "no durations", changed(dyn, func(p *catalog.Product) { p.Durations = sta.Durations })},
		{"a lower case country", "alpha-2", changed(dyn, func(p *catalog.Product) { p.Countries = []string{"de"} })},
		{"countries in disorder", "sorted", changed(dyn, func(p *catalog.Product) { p.Countries = []string{"US", "DE"} })},
		{"a country twice", "each once", changed(dyn, func(p *catalog.Product) { p.Countries = []string{"DE", "DE"} })},
		{"a city with a dot", "city", changed(dyn, func(p *catalog.Product) { p.Cities = []string{"a.b"} })},
		{"no durations", "durations are missing", changed(sta, func(p *catalog.Product) { p.Durations = nil })},
		{"no countries", "countries are missing", changed(sta, func(p *catalog.Product) { p.Countries = nil })},
		{"durations in disorder", "shortest first", changed(sta, func(p *catalog.Product) {
			p.Durations = []catalog.Duration{{Days: 90, Price: 1}, {Days: 30, Price: 1}}
		})},
		{"no days", "shortest first", changed(sta, func(p *catalog.Product) { p.Durations = []catalog.Duration{{Price: 1}} })},
		{"free days", "price of 30 days", changed(sta, func(p *catalog.Product) { p.Durations = []catalog.Duration{{Days: 30}} })},
		{"days out of bounds", "price of 30 days", changed(sta, func(p *catalog.Product) {
			p.Durations = []catalog.Duration{{Days: 30, Price: catalog.MaxPrice + 1}}
		})},
		{"no least quantity", "quantity", changed(sta, func(p *catalog.Product) { p.MinQuantity = 0 })},
		{"an unknown tier", "least tier", changed(dyn, func(p *catalog.Product) { p.MinTier = "gold" })},
		{"fair use of traffic", "fair use", changed(dyn, func(p *catalog.Product) { p.FairUse = 1 })},
		{"fair use below nothing", "fair use", changed(sta, func(p *catalog.Product) { p.FairUse = -1 })},
		{"a quantity of 101", "quantity", changed(sta, func(p *catalog.Product) { p.MaxQuantity = 101 })},
	} {
		t.Run(c.claim, func(t *testing.T) {
			err := catalog.Check(append(slices.Clone(good[1:2]), c.product))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a problem with %q", err, c.want)
			}
			if err != nil && strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("one problem, and it names several: %v", err)
			}
		})
	}
	t.Run("every problem is named", func(t *testing.T) {
		err := catalog.Check([]catalog.Product{{Type: session.Dynamic}, {Type: session.Static}})
		if n := strings.Count(err.Error(), "\n") + 1; n != 12 {
			t.Errorf("%d problems are named, want 12:\n%v", n, err)
		}
	})
}

func TestProblemsNameTheirField(t *testing.T) {
	bad := changed(static("sta", 0, "DE", "US"), func(p *catalog.Product) {
		p.Durations[1].Days, p.Cities, p.MaxQuantity = 7, []string{"a b"}, 0
		p.Sources = append(p.Sources, procurement.Source{Provider: "Q"})
	})
	var got []string
	for _, p := range catalog.Problems([]catalog.Product{testProducts()[0], bad}) {
		got = append(got, p.Field)
		if p.Index != 1 {
			t.Errorf("%s is of product %d", p.Field, p.Index)
		}
	}
	want := []string{"cities[0]", "sources[1].provider", "durations[0].price", "durations[1].days", "durations[1].price", "min_quantity"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A product of several providers is sold in what is whole for each of them.
func TestStepOf(t *testing.T) {
	for _, c := range []struct {
		units []int64
		want  int64
	}{
		{nil, session.TrafficStep},
		{[]int64{0}, session.TrafficStep},
		{[]int64{1, 1_000}, session.TrafficStep},
		{[]int64{billing.GB}, billing.GB},
		{[]int64{session.TrafficStep, billing.GB, 0}, billing.GB},
		{[]int64{billing.GB * 2, billing.GB * 3}, billing.GB * 6},
		{[]int64{1 << 20}, 15_625 << 20}, // the first that has three decimals of a GB
	} {
		if got := catalog.StepOf(c.units...); got != c.want {
			t.Errorf("of %v it is %d, want %d", c.units, got, c.want)
		}
	}
}

// A recommended call can be sent as it is.
func TestARecommendedTrafficIsWhole(t *testing.T) {
	p := changed(dynamic("dyn", domain.Dollar, "US"), func(p *catalog.Product) {
		p.StepBytes, p.MinBytes, p.MaxBytes = 750_000_000, 750_000_000, 750_000_000*1000
	})
	list, err := catalog.Recommend([]catalog.Product{p}, catalog.Criteria{})
	if err != nil || len(list) != 1 || list[0].Create.Bytes != 1_500_000_000 {
		t.Errorf("recommended %+v, %v", list, err)
	}
}
