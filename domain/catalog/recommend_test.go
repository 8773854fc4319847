package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

func ptr[T any](v T) *T { return &v }

func ranked(list []catalog.Recommendation) string {
	var out []string
	for _, r := range list {
		out = append(out, r.Product.No)
	}
	return strings.Join(out, " ")
}

func TestRecommend(t *testing.T) {
	for _, c := range []struct {
		claim string
		wish  catalog.Criteria
		want  string
	}{
		{"a crawler is given rotating exits first", catalog.Criteria{UseCase: catalog.WebScraping}, "dyn_fast dyn_slow sta_isp sta_city"},
		{"an account that is logged in is given an exit that stays", catalog.Criteria{UseCase: catalog.AccountManagement}, "sta_isp sta_city dyn_fast dyn_slow"},
		{"no use named is general use", catalog.Criteria{}, "dyn_fast dyn_slow sta_isp sta_city"},
		{"only what is sold in the region, in any case", catalog.Criteria{TargetRegion: "jp"}, "sta_city"},
		{"a sticky IP leaves out what rotates", catalog.Criteria{UseCase: catalog.WebScraping, RequireStickyIP: true}, "sta_isp sta_city"},
		{"what is not available is left out", catalog.Criteria{TargetRegion: "BR"}, ""},
		{"what the budget covers comes first", catalog.Criteria{UseCase: catalog.AdVerification, Budget: ptr(domain.Dollar / 4)}, "dyn_slow dyn_fast sta_isp sta_city"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			list, err := catalog.Recommend(testProducts(), c.wish)
			if err != nil {
				t.Fatal(err)
			}
			if got := ranked(list); got != c.want {
				t.Errorf("got %s, want %s: %+v", got, c.want, list)
			}
		})
	}
}

func TestRecommendationHasTheCost(t *testing.T) {
	list, err := catalog.Recommend(testProducts(), catalog.Criteria{TargetRegion: "DE", Budget: ptr(3 * domain.Dollar), SessionCount: ptr(4)})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range list {
		lines = append(lines, fmt.Sprint(r.Product.No, " ", r.EstimatedCost, " ", r.WithinBudget, " ", r.Create))
	}
	slices.Sort(lines)
	want := []string{
		"dyn_fast 1.6 true {dynamic dyn_fast 1000000000 0 0 DE}",
		"dyn_slow 1 true {dynamic dyn_slow 1000000000 0 0 DE}",
		"sta_city 6 false {static sta_city 0 4 30 DE}",
		"sta_isp 4 false {static sta_isp 0 4 30 DE}",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestCriteriaOutOfBounds(t *testing.T) {
	for _, c := range []struct {
		claim string
		wish  catalog.Criteria
		field string
	}{
		{"a use case outside the list", catalog.Criteria{UseCase: "Web_Scraping"}, "use_case"},
		{"an unknown region", catalog.Criteria{TargetRegion: "UK"}, "target_region"},
		{"a budget of 0", catalog.Criteria{Budget: ptr(domain.Money(0))}, "budget"},
		{"a budget below 0", catalog.Criteria{Budget: ptr(domain.Money(-1))}, "budget"},
		{"no session", catalog.Criteria{SessionCount: ptr(0)}, "session_count"},
		{"101 sessions", catalog.Criteria{SessionCount: ptr(101)}, "session_count"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			_, err := catalog.Recommend(testProducts(), c.wish)
			wantFields(t, err, c.field)
		})
	}
	t.Run("every fault is named", func(t *testing.T) {
		_, err := catalog.Recommend(testProducts(), catalog.Criteria{UseCase: "x", TargetRegion: "x", Budget: ptr(domain.Money(0)), SessionCount: ptr(-1)})
		wantFields(t, err, "use_case", "budget", "session_count", "target_region")
	})
}

func TestUseCasesAreThoseOfTheInterface(t *testing.T) {
	want := "[web_scraping data_collection account_management ad_verification seo_monitoring market_research general]"
	if got := fmt.Sprint(catalog.UseCases); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w := catalog.DefaultWeights
	if sum := w.Fit + w.Budget + w.Price + w.Ready; sum != 100 {
		t.Errorf("the weights sum to %d, want 100", sum)
	}
}

// drawProduct makes a product that Check accepts.
func drawProduct(t *rapid.T, i int) catalog.Product {
	countries := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"BR", "DE", "FR", "JP", "US"}), 1, 5, rapid.ID).Draw(t, "countries")
	slices.Sort(countries)
	no := fmt.Sprint("p", i)
	price := domain.Money(rapid.Int64Range(1, 1_000_000_000).Draw(t, "price"))
	if rapid.Bool().Draw(t, "dynamic") {
		p := dynamic(no, price, countries...)
		p.MinBytes = rapid.Int64Range(1, 5000).Draw(t, "min") * (billing.GB / 1000)
		p.MaxBytes = p.MinBytes + rapid.Int64Range(0, 5000).Draw(t, "more")*(billing.GB/1000)
		p.Async, p.Available = rapid.Bool().Draw(t, "async"), rapid.Bool().Draw(t, "available")
		return p
	}
	p := static(no, price, countries...)
	p.MinQuantity = rapid.IntRange(1, 100).Draw(t, "min")
	p.MaxQuantity = rapid.IntRange(p.MinQuantity, 100).Draw(t, "max")
	p.Async, p.Available = rapid.Bool().Draw(t, "async"), rapid.Bool().Draw(t, "available")
	return p
}

func TestRecommendationsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var products []catalog.Product
		for i := range rapid.IntRange(0, 6).Draw(t, "products") {
			products = append(products, drawProduct(t, i))
		}
		if err := catalog.Check(products); err != nil {
			t.Fatalf("the generator is wrong: %v", err)
		}
		wish := catalog.Criteria{
			UseCase:         rapid.SampledFrom(catalog.UseCases).Draw(t, "use case"),
			Budget:          rapid.Ptr(rapid.Custom(func(t *rapid.T) domain.Money { return domain.Money(rapid.Int64Range(1, 1e12).Draw(t, "x")) }), true).Draw(t, "budget"),
			SessionCount:    rapid.Ptr(rapid.IntRange(1, 100), true).Draw(t, "count"),
			RequireStickyIP: rapid.Bool().Draw(t, "sticky"),
		}
		list, err := catalog.Recommend(products, wish)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range list {
			if r.Score < 0 || r.Score > 1 || i > 0 && r.Score > list[i-1].Score {
				t.Errorf("score %v at place %d", r.Score, i)
			}
			if len(r.Reasons) == 0 || r.EstimatedCost <= 0 || !r.Product.Available {
				t.Errorf("%+v", r)
			}
			if wish.RequireStickyIP && r.Product.Type == session.Dynamic {
				t.Errorf("%s rotates", r.Product.No)
			}
			creatable(t, r)
		}
		slices.Reverse(products)
		if again, _ := catalog.Recommend(products, wish); ranked(again) != ranked(list) {
			t.Errorf("the order of the catalogue changes the ranking: %s, %s", ranked(list), ranked(again))
		}
	})
}

// creatable holds the create call to what POST /sessions demands.
func creatable(t *rapid.T, r catalog.Recommendation) {
	request := r.Create.Request()
	spec, err := request.Check()
	if err == nil {
		spec, err = r.Product.Terms().Check(spec)
	}
	if err != nil {
		t.Fatalf("%+v cannot be created: %v", r.Create, err)
	}
	if spec.Bytes != r.Create.Bytes || spec.Type == session.Static && spec.Quantity != r.Create.Quantity {
		t.Errorf("the request is %+v, the recommendation %+v", spec, r.Create)
	}
}
