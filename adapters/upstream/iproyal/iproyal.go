// Package iproyal sells addresses and residential traffic of IPRoyal.
package iproyal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/upstream/kind"
	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// IPRoyal has one API for addresses and another one for residential traffic, each
// with its own key. See https://docs.iproyal.com/proxies/isp/api and
// https://docs.iproyal.com/proxies/residential/api/sub-users .
const (
	resellerHost    = "https://apid.iproyal.com"
	residentialHost = "https://resi-api.iproyal.com"
	// defaultGateway is the host and port of the residential proxy.
	defaultGateway = "geo.iproyal.com:12321"
	// trafficSKU is the SKU of residential traffic, which has no product number.
	trafficSKU = "residential"
)

// Config is an account as the operator writes it.
type Config struct {
	kind.Common           // its BaseURL is of both APIs, its Locations are the seller's numbers of places
	Key            string `secret:"key" help:"access token of the reseller API; without it no static product can be sold"`
	ResidentialKey string `secret:"residential_key" help:"token of the residential API; without it no dynamic product can be sold"`
	Gateway        string `option:"gateway" help:"host:port of the residential proxy"`
	Answers        string `option:"answers" help:"answers to the questions of products, a JSON object such as {\"12\":\"scraping\"}"`
}

// Kind is the kind of these providers.
var Kind = kind.Of("iproyal", New).Describe("gateway", "host:port of the residential proxy; empty: "+defaultGateway)

// Validate returns an error that names every invalid setting and no secret.
func (c Config) Validate() error {
	var faults []error
	if c.Key == "" && c.ResidentialKey == "" {
		faults = append(faults, errors.New("secrets.key or secrets.residential_key is needed"))
	}
	if _, _, err := parseGateway(c.Gateway); err != nil {
		faults = append(faults, err)
	}
	if _, err := parseAnswers(c.Answers); err != nil {
		faults = append(faults, err)
	}
	for place, id := range c.Locations {
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || n <= 0 {
			faults = append(faults, fmt.Errorf("locations.%s is not a number of a location: %q", place, id))
		}
	}
	return errors.Join(faults...)
}

// Provider sells addresses through the reseller API and traffic through residential
// sub-users, each only with its key. Nothing here was tried against a live account.
// Unverified: whether an account may buy through the API without approval, and
// whether the terms allow resale.
//
// It is one provider with one set of capabilities. Addresses carry no order key; a
// sub-user has the key of its order as its name. Cancels is true for traffic alone:
// an order of addresses runs to its end.
type Provider struct {
	config      Config
	reseller    *rest.Client // nil without its key
	residential *rest.Client // nil without its key
	host        string
	port        uint16
	answers     map[string]any
	now         func() time.Time
}

var (
	_ ports.Static  = (*Provider)(nil)
	_ ports.Dynamic = (*Provider)(nil)
	_ ports.Lister  = (*Provider)(nil)
)

// New returns a provider, or the error of Validate.
func New(c Config) (*Provider, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Provider{config: c, now: time.Now}
	p.host, p.port, _ = parseGateway(c.Gateway)
	p.answers, _ = parseAnswers(c.Answers)
	connect := func(host, path string, header http.Header) *rest.Client {
		api := kind.API(&c, host)
		api.Base, api.Header, api.Explain = api.Base+path, header, explain
		return rest.New(api)
	}
	if c.Key != "" {
		p.reseller = connect(resellerHost, "/v1/reseller", http.Header{"X-Access-Token": {c.Key}})
	}
	if c.ResidentialKey != "" {
		p.residential = connect(residentialHost, "/v1", http.Header{"Authorization": {"Bearer " + c.ResidentialKey}})
	}
	return p, nil
}

// Name returns the name that the operator chose.
func (p *Provider) Name() string { return p.config.Name }

// Capabilities depends on the keys that are configured. The provider is no ports.Replacer: the API
// changes the credentials of an address, not the address.
func (p *Provider) Capabilities() procurement.Capabilities {
	c := procurement.Capabilities{ViaUpstream: true, Workers: true, Direct: true, Async: p.reseller != nil,
		Renews: p.reseller != nil, CancelsTraffic: p.residential != nil, KeepsTrafficOrderKey: p.residential != nil}
	if p.residential != nil {
		c.CapUnit, c.CounterLag = capUnit, counterLag
	}
	return c
}

// Ready returns false while the circuit breaker of either API is open.
func (p *Provider) Ready() bool {
	return (p.reseller == nil || p.reseller.Ready()) && (p.residential == nil || p.residential.Ready())
}

// sells fails with Unsupported for a type whose key is missing.
func (p *Provider) sells(typ session.Type) error {
	if typ == session.Static && p.reseller != nil || typ == session.Dynamic && p.residential != nil {
		return nil
	}
	return procurement.Refuse(procurement.Unsupported, "no key is configured for "+string(typ)+" products")
}

// Offers lists addresses by product and place, and traffic, whose stock is unknown.
// A place whose name is not a country is left out unless it is configured.
func (p *Provider) Offers(ctx context.Context) ([]procurement.Offer, error) {
	var offers []procurement.Offer
	if p.reseller != nil {
		var err error
		if offers, err = p.addressOffers(ctx); err != nil {
			return nil, err
		}
	}
	if p.residential != nil {
		offers = append(offers, procurement.Offer{SKU: trafficSKU, Type: session.Dynamic, Name: "Residential",
			Stock: procurement.StockUnknown})
	}
	return offers, nil
}

// Balance returns the money of the account, or an unknown balance without the
// reseller's key. Traffic is sold from what the account bought before.
func (p *Provider) Balance(ctx context.Context) (procurement.ProviderBalance, error) {
	if p.reseller == nil {
		return procurement.ProviderBalance{}, nil
	}
	return p.funds(ctx)
}

// Quote returns a cost of 0 for traffic, which the account paid for before.
func (p *Provider) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	if err := p.sells(in.Type); err != nil {
		return procurement.Quote{}, err
	}
	if in.Type == session.Dynamic {
		return procurement.Quote{Stock: procurement.StockUnknown}, nil
	}
	return p.quoteAddresses(ctx, in)
}

// Order creates a sub-user, or orders addresses, which are delivered later.
func (p *Provider) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	if err := p.sells(in.Type); err != nil {
		return procurement.Delivery{}, err
	}
	if in.Type == session.Dynamic {
		return p.createSubUser(ctx, in)
	}
	return p.orderAddresses(ctx, in)
}

// Find returns the sub-user that has the key of a dynamic intent as its name, or the
// orders of a static intent's product and place, the newest first.
func (p *Provider) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	if err := p.sells(in.Type); err != nil {
		return nil, err
	}
	if in.Type == session.Dynamic {
		u, ok, err := p.searchSubUser(ctx, in.Key)
		if err != nil || !ok {
			return nil, err
		}
		return []procurement.Delivery{p.subUserDelivery(u)}, nil
	}
	return p.findAddresses(ctx, in)
}

// Read returns a sub-user or an order of addresses.
func (p *Provider) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	if p.isOrder(ref) {
		return p.readOrder(ctx, ref)
	}
	u, err := p.subUser(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	return p.subUserDelivery(u), nil
}

// Cancel deletes a sub-user, which returns its unused traffic to the account. It
// fails with Unsupported for an order of addresses.
func (p *Provider) Cancel(ctx context.Context, ref string) error {
	if p.isOrder(ref) {
		return procurement.Refuse(procurement.Unsupported, "an order of addresses runs to its end")
	}
	return p.deleteSubUser(ctx, ref)
}

// isOrder reports whether a ref is the number of an order. The ref of a sub-user is
// its hash, 26 letters and digits. With one key all refs are of one sort.
func (p *Provider) isOrder(ref string) bool {
	if p.reseller == nil || p.residential == nil {
		return p.reseller != nil
	}
	return ref != "" && strings.Trim(ref, "0123456789") == ""
}

// parseTime reads a date of the seller, which has no zone. That it is UTC is
// unverified.
func parseTime(s string) (time.Time, error) { return time.Parse(time.DateTime, s) }
