package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// IPRoyal has an API for addresses and another one for residential traffic, each
// with a key of its own. See https://docs.iproyal.com/proxies/isp/api and
// https://docs.iproyal.com/proxies/residential/api/sub-users .
const (
	iproyalHost     = "https://apid.iproyal.com"
	iproyalResiHost = "https://resi-api.iproyal.com"
	iproyalGateway  = "geo.iproyal.com:12321"
	// iproyalTraffic is the SKU of residential traffic, which has no number there.
	iproyalTraffic = "residential"
)

var iproyalKind = Kind{
	Secrets: []Field{
		{Name: "key", Help: "access token of the reseller API; without it no static product can be sold"},
		{Name: "residential_key", Help: "token of the residential API; without it no dynamic product can be sold"},
	},
	Options: []Field{
		{Name: "gateway", Help: "host:port of the residential proxy; empty: " + iproyalGateway},
		{Name: "answers", Help: `answers to the questions of products, a JSON object such as {"12":"scraping"}`},
	},
	make: newIPRoyal,
}

// iproyal sells addresses (Static) through the reseller API and traffic (Dynamic)
// through residential sub-users, each only with its key. Nothing here was tried
// against a live account. Unverified: whether an account may buy through the API
// without approval, and whether the terms allow resale.
//
// It is one provider with one set of capabilities: addresses carry nothing of
// ours, and a sub-user is called like the key of its order. Cancels speaks of traffic: an order of addresses
// runs to its end.
type iproyal struct {
	spec    Spec
	log     *slog.Logger
	static  *rest // nil without its key
	resi    *rest // nil without its key
	host    string
	port    uint16
	answers map[string]any
}

var (
	_ ports.Static  = (*iproyal)(nil)
	_ ports.Dynamic = (*iproyal)(nil)
)

func newIPRoyal(s Spec, log *slog.Logger) (ports.Provider, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &iproyal{spec: s, log: log}
	var faults []error
	key, resiKey := s.Secrets["key"], s.Secrets["residential_key"]
	if key == "" && resiKey == "" {
		faults = append(faults, errors.New("secrets.key or secrets.residential_key is needed"))
	}
	var err error
	if p.host, p.port, err = iproyalAddress(s.Options["gateway"]); err != nil {
		faults = append(faults, err)
	}
	if p.answers, err = iproyalAnswers(s.Options["answers"]); err != nil {
		faults = append(faults, err)
	}
	for place, id := range s.Locations {
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || n <= 0 {
			faults = append(faults, fmt.Errorf("locations.%s is no number of a location: %q", place, id))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	config := restConfig{Hide: []string{key, resiKey}, PerSecond: s.PerSecond, Timeout: s.Timeout, Log: log, Name: s.Name,
		Explain: iproyalExplain}
	base := func(own string) string {
		if s.BaseURL != "" {
			return strings.TrimSuffix(s.BaseURL, "/")
		}
		return own
	}
	if key != "" {
		c := config
		c.Base, c.Header = base(iproyalHost)+"/v1/reseller", http.Header{"X-Access-Token": {key}}
		p.static = newREST(c)
	}
	if resiKey != "" {
		c := config
		c.Base, c.Header = base(iproyalResiHost)+"/v1", http.Header{"Authorization": {"Bearer " + resiKey}}
		p.resi = newREST(c)
	}
	return p, nil
}

func (p *iproyal) Name() string { return p.spec.Name }

func (p *iproyal) Capabilities() procurement.Capabilities {
	c := procurement.Capabilities{ViaUpstream: true, Direct: true, Async: p.static != nil, Renews: p.static != nil,
		Cancels: p.resi != nil, KeepsTrafficOrderKey: p.resi != nil}
	if p.resi != nil {
		c.CapUnit = iproyalCapUnit
	}
	return c
}

// Ready is false while one of the two APIs is left alone.
func (p *iproyal) Ready() bool {
	return (p.static == nil || p.static.Ready()) && (p.resi == nil || p.resi.Ready())
}

// sells is Unsupported for a type whose key is missing.
func (p *iproyal) sells(typ session.Type) error {
	if typ == session.Static && p.static != nil || typ == session.Dynamic && p.resi != nil {
		return nil
	}
	return procurement.Refuse(procurement.Unsupported, "no key is configured for "+string(typ)+" products")
}

// Offers lists addresses by product and place, and traffic, whose stock nobody
// tells. A place whose name is no country is left out, unless it is configured.
func (p *iproyal) Offers(ctx context.Context) ([]procurement.Offer, error) {
	var offers []procurement.Offer
	if p.static != nil {
		var err error
		if offers, err = p.addressOffers(ctx); err != nil {
			return nil, err
		}
	}
	if p.resi != nil {
		offers = append(offers, procurement.Offer{SKU: iproyalTraffic, Type: session.Dynamic, Name: "Residential", Stock: procurement.StockUnknown})
	}
	return offers, nil
}

// Balance is the money of the account. Traffic is sold from what was bought
// before; without the reseller's key nothing is told.
func (p *iproyal) Balance(ctx context.Context) (procurement.ProviderBalance, error) {
	if p.static == nil {
		return procurement.ProviderBalance{}, nil
	}
	return p.funds(ctx)
}

// Quote is zero for traffic: it was paid when the account bought it.
func (p *iproyal) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	if err := p.sells(in.Type); err != nil {
		return procurement.Quote{}, err
	}
	if in.Type == session.Dynamic {
		return procurement.Quote{Stock: procurement.StockUnknown}, nil
	}
	return p.quoteAddresses(ctx, in)
}

func (p *iproyal) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	if err := p.sells(in.Type); err != nil {
		return procurement.Delivery{}, err
	}
	if in.Type == session.Dynamic {
		return p.createSubUser(ctx, in)
	}
	return p.orderAddresses(ctx, in)
}

// Find lists the sub-user that carries the key of a dynamic intent, and for a
// static one the orders of its product and place, the newest first.
func (p *iproyal) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
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

func (p *iproyal) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	if p.isOrder(ref) {
		return p.readOrder(ctx, ref)
	}
	u, err := p.subUser(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	return p.subUserDelivery(u), nil
}

// Cancel deletes a sub-user, which gives its rest of the traffic back to the
// account. An order of addresses cannot be given up.
func (p *iproyal) Cancel(ctx context.Context, ref string) error {
	if p.isOrder(ref) {
		return procurement.Refuse(procurement.Unsupported, "an order of addresses runs to its end")
	}
	return p.deleteSubUser(ctx, ref)
}

// isOrder tells the number of an order from the hash of a sub-user, which is a
// text of 26 letters and digits. With one key there is only one of them.
func (p *iproyal) isOrder(ref string) bool {
	if p.static == nil || p.resi == nil {
		return p.static != nil
	}
	return ref != "" && strings.Trim(ref, "0123456789") == ""
}

// iproyalTime reads a date as the seller writes it: without a zone, read as UTC,
// which is unverified.
func iproyalTime(s string) (time.Time, error) { return time.Parse(time.DateTime, s) }
