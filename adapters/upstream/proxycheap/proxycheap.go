// Package proxycheap sells addresses of Proxy-Cheap.
package proxycheap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/upstream/kind"
	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

const (
	defaultBase = "https://api.proxy-cheap.com"
	// defaultService is what addresses are ordered as unless configured.
	defaultService = "static-residential-ipv4"
)

// Config is an account as the operator writes it.
type Config struct {
	kind.Common           // its Locations must be empty: the seller takes country codes
	Key            string `secret:"key" required:"true" help:"X-Api-Key of the account"`
	Secret         string `secret:"secret" required:"true" help:"X-Api-Secret of the account"`
	CallbackSecret string `secret:"callback_secret" help:"secret of the webhook; without it every callback is refused"`
	Service        string `option:"service" help:"what addresses are ordered as"`
	Plan           string `option:"plan" help:"basic, standard or premium, where the SKU of a product names none"`
	ISP            string `option:"isp" help:"id of the internet provider of the addresses; empty: any"`
	BalanceUnit    string `option:"balance_unit" help:"the unit of the balance that the seller returns, dollars (default) or cents"`
}

// Kind is the kind of these providers.
var Kind = kind.Of("proxycheap", New).Describe("service", "what addresses are ordered as; empty: "+defaultService)

// Validate returns an error that names every invalid setting and no secret.
func (c Config) Validate() error {
	var faults []error
	if u := c.BalanceUnit; u != "" && u != "cents" && u != "dollars" {
		faults = append(faults, fmt.Errorf("options.balance_unit must be cents or dollars, not %q", u))
	}
	for _, f := range []struct{ name, value string }{{"service", c.Service}, {"plan", c.Plan}} {
		if f.value != "" && !idForm.MatchString(f.value) {
			faults = append(faults, fmt.Errorf("options.%s is not an id: %q", f.name, f.value))
		}
	}
	if len(c.Locations) > 0 {
		faults = append(faults, errors.New("locations are not used: the seller takes codes of countries"))
	}
	return errors.Join(faults...)
}

// Provider sells addresses for calendar months. See https://docs.proxy-cheap.com .
// Nothing here was tried against a live account. An order has a UUID, and every
// address names its order, which is how one whose answer was lost is found.
//
// The SKU of a product is a plan ("standard"), or a service and a plan
// ("static-datacenter-ipv4/standard").
//
// Unverified: whether every listed address names its order, as the documentation shows;
// whether GET /proxies lists addresses while they are PENDING, which the
// search for a lost order relies on; the answers for an empty stock and an empty
// account; the answer to a renewal, whose result is therefore read from the addresses;
// the signature of the webhook.
type Provider struct {
	config Config
	api    *rest.Client
	// balance reads the balance, which a key may lack the right for. That is not a failure
	// of the seller for the circuit breaker, which it shares with api.
	balance *rest.Client
	now     func() time.Time
}

var (
	_ ports.Static    = (*Provider)(nil)
	_ ports.Callbacks = (*Provider)(nil)
	_ ports.Lister    = (*Provider)(nil)
)

// New returns a provider, or the error of Validate.
func New(c Config) (*Provider, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	api := kind.API(&c, defaultBase)
	api.Header, api.Explain = http.Header{"X-Api-Key": {c.Key}, "X-Api-Secret": {c.Secret}}, explain
	p := &Provider{config: c, now: time.Now, api: rest.New(api)}
	p.balance = p.api.Paced(rest.NewPace(p.api.PerSecond), explainBalance)
	return p, nil
}

// Name returns the name that the operator chose.
func (p *Provider) Name() string { return p.config.Name }

// Capabilities describes orders that are delivered later and cannot be cancelled. The provider
// is no ports.Replacer: the API documents rotate-ip for mobile addresses alone.
func (p *Provider) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Async: true, Renews: true, Direct: true}
}

// Ready returns false while the circuit breaker is open.
func (p *Provider) Ready() bool { return p.api.Ready() }

// Balance returns the balance of the account. It is unknown if the key has no right to
// read it.
func (p *Provider) Balance(ctx context.Context) (procurement.ProviderBalance, error) {
	var out struct {
		Balance rest.Number `json:"balance"`
	}
	err := p.balance.Call(ctx, rest.Safely, http.MethodGet, "/account/balance", nil, &out)
	if procurement.ClassOf(err) == procurement.Unsupported {
		return procurement.ProviderBalance{}, nil
	}
	if err != nil {
		return procurement.ProviderBalance{}, err
	}
	places := 6
	if p.config.BalanceUnit == "cents" {
		places = 4
	}
	n, ok := out.Balance.Decimal(places, rest.Down)
	if !ok {
		return procurement.ProviderBalance{}, procurement.Refuse(procurement.Temporary, "the balance is not of a shape "+
			"that is known")
	}
	return procurement.ProviderBalance{Amount: domain.Money(n), Known: true}, nil
}

// Offers returns the plans of GET /v2/order that sell addresses by the month, with the
// countries of POST /v2/order/{service}. They have neither stock nor price.
func (p *Provider) Offers(ctx context.Context) ([]procurement.Offer, error) {
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
	if err := p.api.Call(ctx, rest.Safely, http.MethodGet, "/v2/order", nil, &list); err != nil {
		return nil, err
	}
	if list.Services == nil {
		return nil, procurement.Refuse(procurement.Temporary, "the list of services is not of a shape that is known")
	}
	var offers []procurement.Offer
	for _, service := range *list.Services {
		if !strings.HasPrefix(service.ID, "static-") || !idForm.MatchString(service.ID) {
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

// planOptions are the choices that a plan can be ordered with.
type planOptions struct {
	Countries []string `json:"countries"`
	Periods   struct {
		Months []int `json:"months"`
	} `json:"periods"`
}

// days returns the terms in days, of which a month has 30.
func (o planOptions) days() (days []int) {
	for _, m := range slices.Sorted(slices.Values(o.Periods.Months)) {
		days = append(days, 30*m)
	}
	return days
}

// options returns the choices of a plan. It is a POST that buys nothing.
func (p *Provider) options(ctx context.Context, service, plan string) (out planOptions, err error) {
	err = p.api.Call(ctx, rest.Safely, http.MethodPost, "/v2/order/"+service, map[string]any{"planId": plan}, &out)
	return out, err
}

// Quote returns the price. A country that the plan does not list is out of stock; the
// stock of a listed one is unknown.
func (p *Provider) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
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

// price returns the cost of an order with the payment fee.
func (p *Provider) price(ctx context.Context, service string, order map[string]any) (domain.Money, error) {
	body := maps.Clone(order)
	delete(body, "ispId")
	delete(body, "autoExtend")
	var out struct {
		Final    rest.Number `json:"finalPrice"`
		Currency string      `json:"currency"`
	}
	if err := p.api.Call(ctx, rest.Safely, http.MethodPost, "/v2/order/"+service+"/price", body, &out); err != nil {
		return 0, err
	}
	cost, ok := out.Final.Cost()
	if !ok || cost <= 0 || out.Currency != "" && out.Currency != domain.Currency {
		return 0, procurement.Refuse(procurement.Temporary, "the price is not of a shape that is known, or in "+
			rest.OneLine(out.Currency))
	}
	return cost, nil
}

// order returns the body of an order. It fails with Invalid if the seller cannot
// deliver it.
func (p *Provider) order(in procurement.Intent) (service string, body map[string]any, err error) {
	if in.Type != session.Static {
		return "", nil, procurement.Refuse(procurement.Unsupported, "only addresses are sold")
	}
	service, plan := p.config.Service, p.config.Plan
	if s, pl, both := strings.Cut(in.SKU, "/"); both {
		service, plan = s, pl
	} else if in.SKU != "" {
		plan = in.SKU
	}
	if service == "" {
		service = defaultService
	}
	months, ok := monthsOf(in.Days)
	switch {
	case !idForm.MatchString(service) || !idForm.MatchString(plan):
		return "", nil, procurement.Refuse(procurement.Invalid, "the product names no service and plan")
	case !ok:
		return "", nil, procurement.Refuse(procurement.Invalid, "only months are sold, of 30 days each: not "+
			strconv.Itoa(in.Days)+" days")
	case in.Quantity < 1:
		return "", nil, procurement.Refuse(procurement.Invalid, "at least one address is ordered")
	case in.Location.City != "":
		return "", nil, procurement.Refuse(procurement.Invalid, "cities cannot be asked for")
	}
	if !country.Known(in.Location.Country) {
		return "", nil, procurement.Refuse(procurement.Invalid, "addresses are sold by country")
	}
	body = map[string]any{"planId": plan, "quantity": in.Quantity, "country": in.Location.Country,
		"period": map[string]any{"unit": "months", "value": months}, "autoExtend": map[string]any{"isEnabled": false}}
	if isp := p.config.ISP; isp != "" {
		body["ispId"] = isp
	}
	return service, body, nil
}

// monthsOf returns a term in months of 30 days. It returns false for any other term.
// The seller's months have 28 to 31 days; the end that it returns counts.
func monthsOf(days int) (int, bool) {
	return days / 30, days > 0 && days%30 == 0 && days <= 360
}
