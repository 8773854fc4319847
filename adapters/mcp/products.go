package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// productData is what the tools read of a product.
type productData struct {
	ProductNo    string         `json:"product_no"`
	Name         string         `json:"name"`
	Type         string         `json:"type"`
	Price        json.Number    `json:"price"`
	Unit         string         `json:"unit"`
	Countries    []string       `json:"countries"`
	Cities       []string       `json:"cities"`
	Durations    []durationData `json:"durations"`
	MinTrafficGB *json.Number   `json:"min_traffic_gb"`
	MaxTrafficGB *json.Number   `json:"max_traffic_gb"`
	Provisioning string         `json:"provisioning"`
	MinTier      string         `json:"min_tier"`
	TrialCredit  bool           `json:"trial_credit"`
	Available    bool           `json:"available"`
}

type durationData struct {
	Days  int         `json:"duration_days"`
	Price json.Number `json:"price"`
}

type recommendationData struct {
	ProductNo     string      `json:"product_no"`
	Score         json.Number `json:"score"`
	Reasons       []string    `json:"reasons"`
	EstimatedCost json.Number `json:"estimated_cost"`
	WithinBudget  bool        `json:"within_budget"`
}

// productAnswer is a product as find_products lists it.
type productAnswer struct {
	ProductNo    string         `json:"product_no"`
	Type         string         `json:"type"`
	Price        json.Number    `json:"price"`
	Unit         string         `json:"unit"`
	Durations    []durationData `json:"durations,omitempty"`
	MinTrafficGB *json.Number   `json:"min_traffic_gb,omitempty"`
	MaxTrafficGB *json.Number   `json:"max_traffic_gb,omitempty"`
	Places       places         `json:"places"`
	Ready        string         `json:"ready"`
	MinTier      string         `json:"min_tier"`
	TrialCredit  bool           `json:"trial_credit"`
	Why          string         `json:"why,omitempty"`
	Cost         json.Number    `json:"estimated_cost,omitempty"`
	WithinBudget *bool          `json:"within_budget,omitempty"`
}

// places are where a product is sold, cut to what fits into an answer.
type places struct {
	Countries []string `json:"countries"`
	More      int      `json:"more_countries,omitempty"`
	Cities    []string `json:"cities,omitempty"`
}

const (
	mostProducts  = 8
	mostCountries = 20
	mostCities    = 8
	mostDurations = 8
	mostNearest   = 3
	pageSize      = 100
	mostPages     = 10 // of products that are looked at
)

// catalogue returns every product that is sold.
func (a *api) catalogue(ctx context.Context, query url.Values) ([]productData, error) {
	var all []productData
	for page := 1; page <= mostPages; page++ {
		var list struct {
			Items      []productData `json:"items"`
			Pagination struct {
				Pages int `json:"total_pages"`
			} `json:"pagination"`
		}
		if query == nil {
			query = url.Values{}
		}
		query.Set("page", strconv.Itoa(page))
		query.Set("page_size", strconv.Itoa(pageSize))
		if err := a.get(ctx, "/products", query, &list); err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if page >= list.Pagination.Pages {
			break
		}
	}
	return all, nil
}

type finding struct {
	Type    string      `json:"type"`
	Country string      `json:"country"`
	City    string      `json:"city"`
	UseCase string      `json:"use_case"`
	GB      json.Number `json:"gb"`
	Budget  json.Number `json:"budget"`
}

func findProducts(ctx context.Context, a *api, in finding) (reply, error) {
	query := url.Values{"available_only": {"true"}}
	if in.Country != "" {
		query.Set("country_code", in.Country)
	}
	if in.Type != "" {
		query.Set("type", in.Type)
	}
	sold, err := a.catalogue(ctx, query)
	if err != nil {
		return reply{}, inArguments(err)
	}
	ask := map[string]any{}
	for name, value := range map[string]string{"use_case": in.UseCase, "target_region": in.Country} {
		if value != "" {
			ask[name] = value
		}
	}
	if in.Budget != "" {
		ask["budget"] = in.Budget
	}
	var best struct {
		Items []recommendationData `json:"items"`
	}
	if err := a.post(ctx, "/products/recommend", "", ask, &best); err != nil {
		return reply{}, inArguments(err)
	}
	found := []productAnswer{}
	for _, r := range best.Items {
		i := slices.IndexFunc(sold, func(p productData) bool { return p.ProductNo == r.ProductNo })
		if i < 0 || !sold[i].carries(in) {
			continue
		}
		if len(found) == mostProducts {
			break
		}
		found = append(found, toProduct(sold[i], r, in))
	}
	next := "Call quote with a product_no to see the exact cost."
	if len(found) == 0 {
		next = "Nothing fits: call find_products with fewer conditions."
	}
	return reply{data: map[string]any{"products": found}, next: next}, nil
}

// carries reports whether a product has the city and the traffic that are asked for.
func (p productData) carries(in finding) bool {
	same := func(city string) bool { return strings.EqualFold(city, in.City) }
	if in.City != "" && len(p.Cities) > 0 && !slices.ContainsFunc(p.Cities, same) {
		return false
	}
	return in.GB == "" || p.Type != "dynamic" || p.MaxTrafficGB == nil || compare(in.GB, *p.MaxTrafficGB) <= 0
}

// compare compares two numbers.
func compare(x, y json.Number) int {
	a, _ := x.Float64()
	b, _ := y.Float64()
	return cmp.Compare(a, b)
}

func toProduct(p productData, r recommendationData, in finding) productAnswer {
	country := strings.ToUpper(in.Country)
	out := productAnswer{ProductNo: p.ProductNo, Type: p.Type, Price: p.Price, Unit: p.Unit, MinTier: p.MinTier,
		TrialCredit: p.TrialCredit, MinTrafficGB: p.MinTrafficGB, MaxTrafficGB: p.MaxTrafficGB,
		Durations: p.Durations[:min(len(p.Durations), mostDurations)], Ready: "at once",
		Why: strings.Join(r.Reasons, "; "), Cost: r.EstimatedCost}
	out.Places.Countries = p.Countries
	if country != "" {
		out.Places.Countries = []string{country}
	}
	if more := len(out.Places.Countries) - mostCountries; more > 0 {
		out.Places.Countries, out.Places.More = out.Places.Countries[:mostCountries], more
	}
	out.Places.Cities = p.Cities[:min(len(p.Cities), mostCities)]
	if p.Provisioning == "async" {
		out.Ready = "after a while"
	}
	if in.Budget != "" {
		out.WithinBudget = &r.WithinBudget
	}
	return out
}

// purchase are the arguments of quote and create_session.
type purchase struct {
	ProductNo string      `json:"product_no"`
	TrafficGB json.Number `json:"traffic_gb"`
	Quantity  json.Number `json:"quantity"`
	Days      json.Number `json:"duration_days"`
	Country   string      `json:"country"`
	City      string      `json:"city"`

	Rotation        string      `json:"rotation"`
	RotationSeconds json.Number `json:"rotation_seconds"`
	MaxCost         json.Number `json:"max_cost"`
	PurchaseID      string      `json:"purchase_id"`
}

// body returns the body of the API's call for a product's type. Equal arguments make equal bodies,
// which the idempotency of a purchase_id rests on.
func (p purchase) body(kind string) map[string]any {
	config := map[string]any{"product_no": p.ProductNo}
	for name, n := range map[string]json.Number{"traffic_gb": p.TrafficGB, "quantity": p.Quantity,
		"duration_days": p.Days, "max_cost": p.MaxCost} {
		if n != "" {
			config[name] = n
		}
	}
	if p.Country != "" {
		config["country"] = p.Country
	}
	if p.City != "" {
		config["city"] = p.City
	}
	rotation := map[string]any{}
	if p.Rotation != "" {
		rotation["mode"] = p.Rotation
	}
	if p.RotationSeconds != "" {
		rotation["interval_seconds"] = p.RotationSeconds
	}
	if len(rotation) > 0 {
		config["rotation"] = rotation
	}
	return map[string]any{"type": kind, "config": config}
}

// wanted returns the request body of a purchase, whose type is that of the product.
func (a *api) wanted(ctx context.Context, p purchase) (map[string]any, []productData, error) {
	sold, err := a.catalogue(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(sold, func(d productData) bool { return d.ProductNo == p.ProductNo })
	if i < 0 {
		return nil, sold, &refusal{Code: "PRODUCT_NOT_FOUND", Message: "no such product"}
	}
	return p.body(sold[i].Type), sold, nil
}

func quote(ctx context.Context, a *api, in purchase) (reply, error) {
	body, sold, err := a.wanted(ctx, in)
	var q struct {
		Cost         json.Number  `json:"cost"`
		BalanceAfter *json.Number `json:"balance_after"`
		Currency     string       `json:"currency"`
	}
	if err == nil {
		err = a.post(ctx, "/sessions?dry_run=true", "", body, &q)
	}
	if err != nil {
		return reply{}, withNearest(err, sold, in)
	}
	return reply{data: q, next: "Call create_session with the same arguments, a max_cost of at least cost, " +
		"and a new purchase_id."}, nil
}

// withNearest adds to a refusal the products nearest to what was asked for: those of the same type and
// country, the cheapest first.
func withNearest(err error, sold []productData, in purchase) error {
	r := refusalOf(inArguments(err))
	var kind string
	for _, p := range sold {
		if p.ProductNo == in.ProductNo {
			kind = p.Type
		}
	}
	rank := func(p productData) int {
		n := 0
		if kind != "" && p.Type != kind {
			n += 2
		}
		if in.Country != "" && !slices.Contains(p.Countries, strings.ToUpper(in.Country)) {
			n++
		}
		return n
	}
	near := slices.DeleteFunc(slices.Clone(sold), func(p productData) bool {
		return !p.Available || p.ProductNo == in.ProductNo
	})
	slices.SortStableFunc(near, func(p, q productData) int {
		return cmp.Or(cmp.Compare(rank(p), rank(q)), compare(p.Price, q.Price))
	})
	nearest := []map[string]any{}
	for _, p := range near[:min(len(near), mostNearest)] {
		nearest = append(nearest, map[string]any{"product_no": p.ProductNo, "type": p.Type, "price": p.Price,
			"unit": p.Unit})
	}
	details := map[string]any{"nearest": nearest}
	for name, value := range r.Details {
		details[name] = value
	}
	r.Details = details
	return r
}
