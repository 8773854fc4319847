// Package products declares what is sold, where, and what fits.
package products

import (
	"cmp"
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

type productReply struct {
	ProductNo    string          `json:"product_no" doc:"Used in the body of POST /sessions."`
	Name         string          `json:"name" doc:"For people."`
	Type         session.Type    `json:"type" doc:"What kind it is."`
	Price        value.Money     `json:"price" doc:"Of one unit; static: for the shortest duration."`
	Unit         string          `json:"unit" enum:"GB,IP" enumName:"Unit" doc:"What the price is for."`
	Currency     string          `json:"currency" enum:"USD" doc:"Of all amounts."`
	Description  string          `json:"description" doc:"What it is, for people."`
	Countries    []string        `json:"countries" doc:"ISO 3166-1 alpha-2."`
	Cities       []string        `json:"cities" doc:"Empty: any city code is taken."`
	Durations    []durationReply `json:"durations" doc:"Empty for a dynamic product."`
	Protocols    []string        `json:"protocols" doc:"What clients can use with the proxy."`
	MinQuantity  int             `json:"min_quantity" doc:"The least that one purchase can have, in the unit."`
	MaxQuantity  int             `json:"max_quantity" doc:"The most that one purchase can have, in the unit."`
	MinTrafficGB value.MaybeGB   `json:"min_traffic_gb" doc:"null for a static product."`
	MaxTrafficGB value.MaybeGB   `json:"max_traffic_gb" doc:"null for a static product."`
	TrafficStep  value.MaybeGB   `json:"traffic_step_gb" doc:"traffic_gb is a multiple of it. null for a static product."`
	Provisioning string          `json:"provisioning" enum:"sync,async" enumName:"Provisioning" doc:"sync: POST /sessions answers 201 active; async: 202 creating."`
	Delivery     string          `json:"delivery" enum:"gateway,direct" enumName:"DeliveryMode" doc:"gateway: proxy.full_url is the service's own gateway. direct: it is the upstream's proxy; usage is what that counts, a minute late, and the rest is given back once it has counted the end."`
	MinTier      account.Tier    `json:"min_tier" doc:"The least tier of an account that may buy it; a lower one is refused with TIER_REQUIRED."`
	TrialCredit  bool            `json:"trial_credit" doc:"Whether trial credit pays for it. false: only your own money does, whatever the balance."`
	FairUseGB    value.MaybeGB   `json:"fair_use_gb" doc:"Static: GB that an IP may transfer for each 30 days bought; null: no limit."`
	Workers      bool            `json:"workers" doc:"Whether its sessions can have workers, see make-workers."`
	UniqueExits  value.MaybeInt  `json:"unique_exits" doc:"Most addresses that a target sees; null: unknown."`
	Available    bool            `json:"available" doc:"Whether it can be bought now."`
}

type durationReply struct {
	DurationDays int         `json:"duration_days" doc:"Days that are paid for."`
	Price        value.Money `json:"price" doc:"Of one IP for the whole duration."`
}

type productsReply struct {
	Items      []productReply      `json:"items" doc:"This page."`
	Pagination endpoint.Pagination `json:"pagination" doc:"Where this page is in the list."`
}

type productsInput struct {
	endpoint.Paging
	Type          openapi.TypeFilter `query:"type" doc:"all is the default."`
	CountryCode   string             `query:"country_code" pattern:"^[A-Za-z]{2}$" patternDescription:"an ISO 3166-1 alpha-2 code" doc:"Only what is sold in this country."`
	AvailableOnly string             `query:"available_only" enum:"true,false" doc:"Leave out what is not available."`
}

type regionReply struct {
	Code   string   `json:"code" doc:"ISO 3166-1 alpha-2."`
	Name   string   `json:"name" doc:"For people."`
	Cities []string `json:"cities" doc:"City codes that can be ordered; empty: any code is taken."`
	Types  []string `json:"types" doc:"The types of products sold there."`
}

type regionsReply struct {
	Items []regionReply `json:"items" doc:"This page."`
}

// declareProducts declares what is sold, and where.
func (s *service) declareProducts() {
	list := endpoint.Operation{
		Keys:   endpoint.AnyKey,
		Method: http.MethodGet,
		Tag:    "products",
		OK:     []endpoint.Reply{{Status: http.StatusOK, Doc: "A page of products.", Data: exampleProducts}},
	}
	list.ID, list.Path, list.Scope, list.Summary = "list-products", "/products", account.ProductsRead, "What is sold"
	list.Doc = "Prices, bounds and places. product_no goes into POST /sessions."
	endpoint.Declare(s.api, list, s.listProducts)
	list.ID, list.Path, list.Scope, list.Open, list.Summary = "list-public-products", "/public/products", "", true,
		"What is sold, without a credential"
	list.Doc = "The same list as GET /products, for those who have no account yet."
	endpoint.Declare(s.api, list, s.listProducts)

	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "list-regions",
		Keys:    endpoint.AnyKey,
		Method:  http.MethodGet,
		Path:    "/products/regions",
		Tag:     "products",
		Summary: "Where something is sold",
		Doc:     "Countries, by ISO 3166-1 alpha-2 code, with what is sold in each.",
		Scope:   account.ProductsRead,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "Every region, by code.", Data: exampleRegions}},
	}, func(context.Context, *struct{}) (int, regionsReply, error) {
		return http.StatusOK, regionsReply{value.Each(s.Catalog.Regions(), toRegion)}, nil
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "recommend-products",
		Keys:    endpoint.AnyKey,
		Method:  http.MethodPost,
		Path:    "/products/recommend",
		Tag:     "products",
		Summary: "Which products fit a use case",
		Doc: "Scores every product that can be bought for a use case, and suggests what to send to POST " +
			"/sessions.",
		Scope:     account.ProductsRead,
		EmptyBody: true,
		OK:        []endpoint.Reply{{Status: http.StatusOK, Doc: "What fits, best first.", Data: exampleRecommendations}},
		Example: map[string]any{
			"use_case":          "web_scraping",
			"target_region":     "US",
			"budget":            5,
			"session_count":     2,
			"require_sticky_ip": false,
		},
	}, s.recommend)
}

func (s *service) listProducts(ctx context.Context, in *productsInput) (int, productsReply, error) {
	f, err := catalog.NewFilter(string(in.Type), in.CountryCode, in.AvailableOnly == "true")
	if err != nil {
		return 0, productsReply{}, err
	}
	list, err := s.Catalog.ProductsAfter(f, in.Asked())
	items, pagination := endpoint.PageOf(list, s.toProduct)
	return http.StatusOK, productsReply{items, pagination}, err
}

// toProduct returns a product with what its sessions can do.
func (s *service) toProduct(p catalog.Product) productReply {
	r := toProduct(p)
	carries, unique := s.Catalog.Workers(p)
	r.Workers, r.UniqueExits = carries, value.MaybeInt(unique)
	return r
}

func toProduct(p catalog.Product) productReply {
	r := productReply{ProductNo: p.No, Name: p.Name, Type: p.Type, Price: value.Money(p.ListPrice()), Unit: "GB",
		Currency: domain.Currency, Description: p.Description, Countries: listOf(p.Countries), Cities: listOf(p.Cities),
		Durations: []durationReply{}, Protocols: []string{string(session.HTTP), string(session.SOCKS5)},
		MinQuantity: max(p.MinQuantity, 1), MaxQuantity: max(p.MaxQuantity, 1), MinTrafficGB: value.MaybeGB(p.MinBytes),
		MaxTrafficGB: value.MaybeGB(p.MaxBytes), TrafficStep: value.MaybeGB(p.Step()), Provisioning: "sync",
		Delivery:  "gateway",
		Available: p.Available, MinTier: cmp.Or(p.MinTier, account.TrialTier),
		TrialCredit: !p.OwnMoneyOnly, FairUseGB: -1}
	if p.FairUse > 0 {
		r.FairUseGB = value.MaybeGB(p.FairUse)
	}
	if p.Async {
		r.Provisioning = "async"
	}
	if p.Direct {
		r.Delivery = "direct"
	}
	if p.Type == session.Static {
		r.Unit, r.MinTrafficGB, r.MaxTrafficGB, r.TrafficStep = "IP", -1, -1, -1
		r.Durations = value.Each(p.Durations, func(d catalog.Duration) durationReply {
			return durationReply{d.Days, value.Money(d.Price)}
		})
	}
	return r
}

// listOf returns a list that is never null.
func listOf(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func toRegion(r catalog.Region) regionReply {
	return regionReply{
		r.Code,
		r.Name,
		listOf(r.Cities),
		value.Each(r.Types, func(t session.Type) string { return string(t) }),
	}
}

var (
	exampleProduct = productReply{
		ProductNo:    "dyn_global_1",
		Name:         "Dynamic, global",
		Type:         "dynamic",
		Price:        openapi.USD("0.25"),
		Unit:         "GB",
		Currency:     domain.Currency,
		Description:  "Rotating exits.",
		Countries:    []string{"DE", "US"},
		Cities:       []string{},
		Durations:    []durationReply{},
		Protocols:    []string{"http", "socks5"},
		MinQuantity:  1,
		MaxQuantity:  1,
		MinTrafficGB: 100_000_000,
		MaxTrafficGB: 1_000_000_000_000,
		TrafficStep:  1_000_000,
		Provisioning: "async",
		Delivery:     "gateway",
		MinTier:      "trial",
		TrialCredit:  true,
		FairUseGB:    -1,
		Available:    true,
	}
	exampleProducts = productsReply{[]productReply{exampleProduct}, endpoint.ExamplePagination}
	exampleRegions  = regionsReply{
		[]regionReply{{"DE", "Germany", []string{"BER"}, []string{"dynamic", "static"}}},
	}
)
