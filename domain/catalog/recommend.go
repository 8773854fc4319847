package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

// UseCase is the purpose that the exits are needed for.
type UseCase string

// The use cases of the public API.
const (
	WebScraping       UseCase = "web_scraping"
	DataCollection    UseCase = "data_collection"
	AccountManagement UseCase = "account_management"
	AdVerification    UseCase = "ad_verification"
	SEOMonitoring     UseCase = "seo_monitoring"
	MarketResearch    UseCase = "market_research"
	General           UseCase = "general"
)

// UseCases lists every use case, in the order of the documentation.
var UseCases = []UseCase{WebScraping, DataCollection, AccountManagement, AdVerification, SEOMonitoring,
	MarketResearch, General}

// words returns the use case as text for a reason.
func (u UseCase) words() string {
	if u == General {
		return "general use"
	}
	return strings.ReplaceAll(string(u), "_", " ")
}

// fit rates how well each type of product suits a use case, 0 to 100. Crawlers
// need many exits; an account that is logged in needs a stable one.
var fit = map[UseCase]map[session.Type]int{
	WebScraping:       {session.Dynamic: 100, session.Static: 30},
	DataCollection:    {session.Dynamic: 95, session.Static: 35},
	AccountManagement: {session.Dynamic: 15, session.Static: 100},
	AdVerification:    {session.Dynamic: 80, session.Static: 55},
	SEOMonitoring:     {session.Dynamic: 85, session.Static: 50},
	MarketResearch:    {session.Dynamic: 85, session.Static: 45},
	General:           {session.Dynamic: 70, session.Static: 60},
}

var fitReason = map[session.Type]map[bool]string{
	session.Dynamic: {true: "rotating exits suit %s", false: "%s is better served by exits that stay"},
	session.Static:  {true: "exits that stay suit %s", false: "%s is better served by rotating exits"},
}

// Weights are the shares of a recommendation's score; they sum to 100.
type Weights struct {
	Fit    int // how the product's type suits the use case
	Budget int // the estimated cost is within the budget
	Price  int // the cheapest of what is recommended has all of it, twice as dear half
	Ready  int // delivered with the answer, nothing to poll for
}

// DefaultWeights let the use case decide, then the money.
var DefaultWeights = Weights{Fit: 50, Budget: 25, Price: 15, Ready: 10}

// MinSessions and MaxSessions bound Criteria.SessionCount.
const (
	MinSessions = 1
	MaxSessions = 100
)

// defaultCountry is suggested for a static session if the criteria name no
// region and the product is sold there.
const defaultCountry = "US"

// Criteria are the inputs of a recommendation; every field is optional.
type Criteria struct {
	UseCase         UseCase       // empty: General
	TargetRegion    string        // country code in any case; empty: any
	Budget          *domain.Money // above 0; nil: none
	SessionCount    *int          // 1 to 100; nil: 1. IPs, or dynamic sessions
	RequireStickyIP bool          // leaves out what rotates by itself: dynamic products
}

// Recommendation is a product and why it fits.
type Recommendation struct {
	Product       Product
	Score         float64 // 0 to 1, two decimals
	Reasons       []string
	EstimatedCost domain.Money
	WithinBudget  bool // true when no budget was given
	Create        Create
}

// Create is a create call that the product accepts. For several dynamic
// sessions it is repeated.
type Create struct {
	Type      session.Type
	ProductNo string
	Bytes     int64  // dynamic
	Quantity  int    // static: IPs
	Days      int    // static
	Country   string // empty: any, dynamic only
}

// Request returns the call as the domain checks it.
func (c Create) Request() session.CreateRequest {
	r := session.CreateRequest{Type: c.Type, ProductNo: c.ProductNo, Location: session.Location{Country: c.Country}}
	if c.Type == session.Static {
		r.Quantity, r.Days = &c.Quantity, &c.Days
	} else {
		r.Bytes = &c.Bytes
	}
	return r
}

// Recommend ranks the available products that meet the criteria, best first;
// products with the same score are ordered by cost, then by code. It returns
// INVALID_REQUEST with every fault if the criteria are out of bounds.
func Recommend(products []Product, w Criteria) ([]Recommendation, error) {
	w, err := w.check(products)
	if err != nil {
		return nil, err
	}
	var list []Recommendation
	for _, p := range products {
		if !p.Available || w.TargetRegion != "" && !p.Sells(w.TargetRegion) ||
			w.RequireStickyIP && p.Type == session.Dynamic {
			continue
		}
		list = append(list, p.estimate(w))
	}
	if len(list) == 0 {
		return nil, nil
	}
	cheapest := slices.MinFunc(list,
		func(a, b Recommendation) int { return cmp.Compare(a.EstimatedCost, b.EstimatedCost) }).EstimatedCost
	for i := range list {
		list[i].rate(w, cheapest, DefaultWeights)
	}
	slices.SortFunc(list, func(a, b Recommendation) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.EstimatedCost, b.EstimatedCost),
			cmp.Compare(a.Product.No, b.Product.No))
	})
	return list, nil
}

// check sets the defaults and returns INVALID_REQUEST for what is out of
// bounds.
func (w Criteria) check(products []Product) (Criteria, error) {
	var issues []domain.FieldIssue
	add := func(field, issue string) { issues = append(issues, domain.FieldIssue{Field: field, Issue: issue}) }
	if w.UseCase == "" {
		w.UseCase = General
	}
	if _, ok := fit[w.UseCase]; !ok {
		add("use_case", "must be one of "+joined(UseCases))
	}
	if w.Budget != nil && *w.Budget <= 0 {
		add("budget", "must be above 0")
	}
	if w.SessionCount == nil {
		w.SessionCount = new(int)
		*w.SessionCount = MinSessions
	}
	if *w.SessionCount < MinSessions || *w.SessionCount > MaxSessions {
		add("session_count", fmt.Sprintf("must be %d to %d", MinSessions, MaxSessions))
	}
	w.TargetRegion = strings.ToUpper(w.TargetRegion)
	known := w.TargetRegion == "" || slices.ContainsFunc(products, func(p Product) bool { return p.Sells(w.TargetRegion) })
	if !known {
		add("target_region", "is not a region that anything is sold in; use one from nearest")
	}
	if issues == nil {
		return w, nil
	}
	e := domain.InvalidFields(issues...)
	if !known {
		e = e.With("nearest", Nearest(w.TargetRegion, codes(products)))
	}
	return w, e
}

// estimate returns the create call and its cost: a GB for each session, or the
// IPs for the product's shortest duration, within the product's bounds.
func (p Product) estimate(w Criteria) Recommendation {
	n := *w.SessionCount
	r := Recommendation{Product: p, Create: Create{Type: p.Type, ProductNo: p.No, Country: w.TargetRegion}}
	if p.Type == session.Dynamic {
		whole := (billing.GB + p.Step() - 1) / p.Step() * p.Step()
		r.Create.Bytes = min(max(whole, p.MinBytes), p.MaxBytes)
		r.EstimatedCost = times(n, billing.TrafficHold(r.Create.Bytes, p.Price))
	} else {
		r.Create.Quantity = min(max(n, p.MinQuantity), p.MaxQuantity)
		r.Create.Days = p.Durations[0].Days
		r.EstimatedCost = billing.IPCost(max(n, p.MinQuantity), p.Durations[0].Price)
		if r.Create.Country == "" {
			r.Create.Country = p.Countries[0]
			if p.Sells(defaultCountry) {
				r.Create.Country = defaultCountry
			}
		}
	}
	r.WithinBudget = w.Budget == nil || r.EstimatedCost <= *w.Budget
	return r
}

// rate sets the score and the reasons.
func (r *Recommendation) rate(w Criteria, cheapest domain.Money, weights Weights) {
	suits := fit[w.UseCase][r.Product.Type]
	points := weights.Fit*suits +
		weights.Price*int(domain.MulDiv(100, int64(cheapest), int64(max(r.EstimatedCost, 1))))
	if r.WithinBudget {
		points += weights.Budget * 100
	}
	if !r.Product.Async {
		points += weights.Ready * 100
	}
	r.Score = float64((points+50)/100) / 100
	r.Reasons = []string{fmt.Sprintf(fitReason[r.Product.Type][suits >= 60], w.UseCase.words())}
	if r.EstimatedCost == cheapest {
		r.Reasons = append(r.Reasons, "the lowest cost of what fits")
	}
	r.explain(w)
}

// explain adds the facts and what to consider before the create call to the
// reasons.
func (r *Recommendation) explain(w Criteria) {
	p, n := r.Product, *w.SessionCount
	add := func(format string, args ...any) { r.Reasons = append(r.Reasons, fmt.Sprintf(format, args...)) }
	switch {
	case w.Budget != nil && r.WithinBudget:
		add("%s USD is within your budget of %s USD", r.EstimatedCost, *w.Budget)
	case w.Budget != nil:
		add("%s USD is above your budget of %s USD", r.EstimatedCost, *w.Budget)
	}
	if w.TargetRegion != "" {
		add("sold in %s", w.TargetRegion)
	}
	if p.Async {
		add("ready after a moment: poll the session until it is active")
	} else {
		add("ready with the answer")
	}
	switch {
	case p.Type == session.Dynamic && n > 1:
		add("send create once for each of the %d sessions", n)
	case p.Type == session.Static && n > p.MaxQuantity:
		add("a session has at most %d IPs: create several", p.MaxQuantity)
	case p.Type == session.Static && n < p.MinQuantity:
		add("a session has at least %d IPs", p.MinQuantity)
	}
}

// times returns n times an amount, limited to math.MaxInt64 like every cost.
func times(n int, x domain.Money) domain.Money { return billing.IPCost(n, x) }

func codes(products []Product) []string {
	var all []string
	for _, p := range products {
		all = append(all, p.Countries...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func joined(list []UseCase) string {
	words := make([]string, len(list))
	for i, u := range list {
		words[i] = string(u)
	}
	return strings.Join(words, ", ")
}
