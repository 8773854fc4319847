package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

const (
	proxyCheapHost    = "https://api.proxy-cheap.com"
	proxyCheapService = "static-residential-ipv4"
)

var proxyCheapKind = Kind{
	Secrets: []Field{
		{Name: "key", Required: true, Help: "X-Api-Key of the account"},
		{Name: "secret", Required: true, Help: "X-Api-Secret of the account"},
		{Name: "callback_secret", Help: "secret of the webhook; without it every callback is refused"},
	},
	Options: []Field{
		{Name: "service", Help: "what addresses are ordered as; empty: " + proxyCheapService},
		{Name: "plan", Help: "basic, standard or premium, where the SKU of a product names none"},
		{Name: "isp", Help: "id of the internet provider of the addresses; empty: any"},
		{Name: "balance_unit", Help: "cents or dollars; empty: what the seller tells of the balance is not used"},
	},
	make: newProxyCheap,
}

// proxyCheap sells addresses for calendar months. See https://docs.proxy-cheap.com .
// Nothing here was tried against a live account. An order is known by a UUID, and
// every address names its order, which is how one whose answer was lost is found.
//
// The SKU of a product is a plan ("standard"), or a service and a plan
// ("static-datacenter-ipv4/standard").
//
// Unverified: the unit of the balance, so that without the option balance_unit
// nothing is concluded from it; whether addresses are listed by GET /proxies while
// they are PENDING, which the search for a lost order relies on; the answers to an
// empty stock and an empty account; the answer to a renewal, which is therefore
// read from the addresses; the signature of the webhook.
type proxyCheap struct {
	spec Spec
	api  *rest
}

var (
	_ ports.Static    = (*proxyCheap)(nil)
	_ ports.Callbacks = (*proxyCheap)(nil)
)

func newProxyCheap(s Spec, log *slog.Logger) (ports.Provider, error) {
	var faults []error
	if u := s.Options["balance_unit"]; u != "" && u != "cents" && u != "dollars" {
		faults = append(faults, fmt.Errorf("options.balance_unit must be cents or dollars, not %q", u))
	}
	for _, name := range []string{"service", "plan"} {
		if v := s.Options[name]; v != "" && !proxyCheapID.MatchString(v) {
			faults = append(faults, fmt.Errorf("options.%s is no id: %q", name, v))
		}
	}
	if len(s.Locations) > 0 {
		faults = append(faults, errors.New("locations are not used: the seller takes codes of countries"))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	base := s.BaseURL
	if base == "" {
		base = proxyCheapHost
	}
	return &proxyCheap{spec: s, api: newREST(restConfig{Base: strings.TrimSuffix(base, "/"),
		Header:    http.Header{"X-Api-Key": {s.Secrets["key"]}, "X-Api-Secret": {s.Secrets["secret"]}},
		Hide:      []string{s.Secrets["key"], s.Secrets["secret"], s.Secrets["callback_secret"]},
		PerSecond: s.PerSecond, Timeout: s.Timeout, Log: log, Name: s.Name, Explain: proxyCheapExplain})}, nil
}

func (p *proxyCheap) Name() string { return p.spec.Name }

func (p *proxyCheap) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Async: true, Renews: true, Direct: true}
}

func (p *proxyCheap) Ready() bool { return p.api.Ready() }

// Balance is told only where the operator says in which unit.
func (p *proxyCheap) Balance(ctx context.Context) (procurement.ProviderBalance, error) {
	var out struct {
		Balance figure `json:"balance"`
	}
	if err := p.api.call(ctx, safely, http.MethodGet, "/account/balance", nil, &out); err != nil {
		return procurement.ProviderBalance{}, err
	}
	places := map[string]int{"dollars": 6, "cents": 4}[p.spec.Options["balance_unit"]]
	if places == 0 {
		return procurement.ProviderBalance{}, nil
	}
	n, ok := out.Balance.decimal(places, down)
	if !ok {
		return procurement.ProviderBalance{}, procurement.Refuse(procurement.Temporary, "the balance is not of a shape that is known")
	}
	return procurement.ProviderBalance{Amount: domain.Money(n), Known: true}, nil
}

// Offers lists the plans of GET /v2/order that sell addresses by the month, with
// the countries of POST /v2/order/{service}. Stock and price are not in them.
func (p *proxyCheap) Offers(ctx context.Context) ([]procurement.Offer, error) {
	var list struct {
		Services *[]struct {
			ID    string `json:"id"`
			Label string `json:"label"`
			Plans []struct {
				ID    string `json:"id"`
				Label string `json:"label"`
			} `json:"plans"`
		} `json:"services"`
	}
	if err := p.api.call(ctx, safely, http.MethodGet, "/v2/order", nil, &list); err != nil {
		return nil, err
	}
	if list.Services == nil {
		return nil, procurement.Refuse(procurement.Temporary, "the list of services is not of a shape that is known")
	}
	var offers []procurement.Offer
	for _, service := range *list.Services {
		if !strings.HasPrefix(service.ID, "static-") || !proxyCheapID.MatchString(service.ID) {
			continue
		}
		for _, plan := range service.Plans {
			options, err := p.options(ctx, service.ID, plan.ID)
			if err != nil {
				return nil, err
			}
			days := options.days()
			if len(days) == 0 {
				continue
			}
			for _, country := range options.Countries {
				offers = append(offers, procurement.Offer{SKU: service.ID + "/" + plan.ID, Type: session.Static,
					Name: service.Label + " " + plan.Label, Location: session.Location{Country: country}, Days: days,
					Stock: procurement.StockUnknown})
			}
		}
	}
	return offers, nil
}

// proxyCheapOptions is what a plan can be ordered with.
type proxyCheapOptions struct {
	Countries []string `json:"countries"`
	Periods   struct {
		Months []int `json:"months"`
	} `json:"periods"`
}

// days are the terms in days: a month counts 30.
func (o proxyCheapOptions) days() (days []int) {
	for _, m := range slices.Sorted(slices.Values(o.Periods.Months)) {
		days = append(days, 30*m)
	}
	return days
}

// options asks what can be ordered. It is a POST that buys nothing.
func (p *proxyCheap) options(ctx context.Context, service, plan string) (out proxyCheapOptions, err error) {
	err = p.api.call(ctx, safely, http.MethodPost, "/v2/order/"+service, map[string]any{"planId": plan}, &out)
	return out, err
}

// Quote asks for the price. A country that the plan does not list is out of
// stock; of one that it lists the stock is not told.
func (p *proxyCheap) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	service, body, err := p.order(in)
	if err != nil {
		return procurement.Quote{}, err
	}
	options, err := p.options(ctx, service, fmt.Sprint(body["planId"]))
	if err != nil {
		return procurement.Quote{}, err
	}
	if !slices.Contains(options.Countries, in.Location.Country) {
		return procurement.Quote{Stock: procurement.StockNo}, nil
	}
	cost, err := p.price(ctx, service, body)
	return procurement.Quote{Cost: cost, Stock: procurement.StockUnknown}, err
}

// price is what an order costs with the fee of paying it.
func (p *proxyCheap) price(ctx context.Context, service string, order map[string]any) (domain.Money, error) {
	body := maps.Clone(order)
	delete(body, "ispId")
	delete(body, "autoExtend")
	var out struct {
		Final    figure `json:"finalPrice"`
		Currency string `json:"currency"`
	}
	if err := p.api.call(ctx, safely, http.MethodPost, "/v2/order/"+service+"/price", body, &out); err != nil {
		return 0, err
	}
	cost, ok := out.Final.cost()
	if !ok || cost <= 0 || out.Currency != "" && out.Currency != domain.Currency {
		return 0, procurement.Refuse(procurement.Temporary, "the price is not of a shape that is known, or in "+plain(out.Currency))
	}
	return cost, nil
}

// order is the body of an order; Invalid when it cannot be asked for.
func (p *proxyCheap) order(in procurement.Intent) (service string, body map[string]any, err error) {
	if in.Type != session.Static {
		return "", nil, procurement.Refuse(procurement.Unsupported, "only addresses are sold")
	}
	service, plan := p.spec.Options["service"], p.spec.Options["plan"]
	if s, pl, both := strings.Cut(in.SKU, "/"); both {
		service, plan = s, pl
	} else if in.SKU != "" {
		plan = in.SKU
	}
	if service == "" {
		service = proxyCheapService
	}
	months, ok := monthsOf(in.Days)
	switch {
	case !proxyCheapID.MatchString(service) || !proxyCheapID.MatchString(plan):
		return "", nil, procurement.Refuse(procurement.Invalid, "the product names no service and plan")
	case !ok:
		return "", nil, procurement.Refuse(procurement.Invalid, "only months are sold, of 30 days each: not "+strconv.Itoa(in.Days)+" days")
	case in.Quantity < 1:
		return "", nil, procurement.Refuse(procurement.Invalid, "at least one address is ordered")
	case in.Location.City != "":
		return "", nil, procurement.Refuse(procurement.Invalid, "cities cannot be asked for")
	}
	if _, known := slices.BinarySearch(Countries, in.Location.Country); !known {
		return "", nil, procurement.Refuse(procurement.Invalid, "addresses are sold by country")
	}
	body = map[string]any{"planId": plan, "quantity": in.Quantity, "country": in.Location.Country,
		"period": map[string]any{"unit": "months", "value": months}, "autoExtend": map[string]any{"isEnabled": false}}
	if isp := p.spec.Options["isp"]; isp != "" {
		body["ispId"] = isp
	}
	return service, body, nil
}

// monthsOf is a term in months: 30 days are one. A month there has 28 to 31
// days; what counts is the end that the seller tells.
func monthsOf(days int) (int, bool) {
	return days / 30, days > 0 && days%30 == 0 && days <= 360
}
