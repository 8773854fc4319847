package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// proxySellerBase is the client API v2 of https://docs.proxy-seller.com/api-v2,
// in front of the key.
const proxySellerBase = "https://proxy-seller.com/personal/api/v2"

// proxySellerPace is how many reads a second are made. Writes are made at a fifth
// of the pace and calls that spend money at a tenth: a second and two seconds
// apart.
const proxySellerPace = 5

// proxySellerSections are what can be sold: addresses for a time, and residential
// traffic. IPv6 and mobile proxies share hosts, and a MIX is many orders in one:
// their lists are not understood here.
var proxySellerSections = []string{"isp", "ipv4", "resident"}

var proxySellerKind = Kind{
	Secrets: []Field{{Name: "key", Required: true, Help: "the API key of the dashboard"}},
	Options: []Field{
		{Name: "section", Help: "isp (default), ipv4, or resident for residential traffic"},
		{Name: "purpose", Help: "what the proxies are for, in words; the seller wants it with every order of addresses"},
		{Name: "host", Help: "resident: res.proxy-seller.com (default), or us., asia. or asia2. before it"},
		{Name: "port", Help: "resident: 10000 (default)"},
	},
	make: makeProxySeller,
}

// proxySeller is one account at Proxy-Seller. Its key is a part of every URL, so
// no URL is ever shown.
type proxySeller struct {
	name, section, purpose string
	places                 map[string]string // the seller's ids, by "US" or "US/newyork"
	log                    *slog.Logger
	// The three share a connection pool and a breaker. Unknown errors refuse a read
	// and a write, and prove nothing about money.
	reads, writes, money *rest
	lane                 *proxySellerLane // of writes and money
	now                  func() time.Time
}

func makeProxySeller(s Spec, log *slog.Logger) (ports.Provider, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &proxySeller{name: s.Name, section: s.Options["section"], purpose: strings.TrimSpace(s.Options["purpose"]),
		places: s.Locations, log: log, now: time.Now}
	if p.section == "" {
		p.section = "isp"
	}
	var faults []error
	if !slices.Contains(proxySellerSections, p.section) {
		faults = append(faults, fmt.Errorf("options.section must be one of %v, not %q", proxySellerSections, p.section))
	}
	traffic := &proxySellerResident{proxySeller: p, host: s.Options["host"]}
	if p.section == "resident" {
		faults = append(faults, traffic.reach(s)...)
	} else {
		faults = append(faults, p.checkAddresses(s)...)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	p.connect(s)
	if p.section == "resident" {
		return traffic, nil
	}
	return &proxySellerStatic{p}, nil
}

// checkAddresses names the faults of what addresses need.
func (p *proxySeller) checkAddresses(s Spec) (faults []error) {
	if p.purpose == "" {
		faults = append(faults, errors.New("options.purpose is missing: what the proxies are for, in words"))
	}
	for _, name := range []string{"host", "port"} {
		if s.Options[name] != "" {
			faults = append(faults, fmt.Errorf("options.%s is for the section resident only", name))
		}
	}
	for _, place := range slices.Sorted(maps.Keys(s.Locations)) {
		country, _, _ := strings.Cut(place, "/")
		if _, known := slices.BinarySearch(Countries, country); !known || s.Locations[place] == "" {
			faults = append(faults, fmt.Errorf("locations.%s must be a country (US) or a city of it (US/newyork), with an id", place))
		}
	}
	return faults
}

// reach reads where the gateway is, and names the faults of what it needs.
func (p *proxySellerResident) reach(s Spec) (faults []error) {
	if p.host != "" && !hostForm.MatchString(p.host) {
		faults = append(faults, errors.New("options.host must be a name or an address"))
	}
	if text := s.Options["port"]; text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			faults = append(faults, errors.New("options.port must be 1 to 65535"))
		}
		p.port = uint16(n)
	}
	return append(faults, profiles["proxyseller"].checkPlaces(s.Locations)...)
}

// connect makes the three ways to call the API.
func (p *proxySeller) connect(s Spec) {
	base, key, pace := strings.TrimRight(s.BaseURL, "/"), s.Secrets["key"], s.PerSecond
	if base == "" {
		base = proxySellerBase
	}
	if pace == 0 {
		pace = proxySellerPace
	}
	escaped := url.PathEscape(key)
	p.reads = newREST(restConfig{Base: base + "/" + escaped, PerSecond: pace, Timeout: s.Timeout, Log: p.log, Name: s.Name,
		Hide: []string{key, proxySellerLowerHex(escaped), proxySellerLowerHex(url.QueryEscape(key))}})
	hide := p.reads.hide.Replace
	p.reads.Explain = func(status int, _ http.Header, body []byte) *procurement.Error {
		return explainProxySeller(status, body, false, hide)
	}
	writes, money := *p.reads, *p.reads
	writes.limit = rate.NewLimiter(rate.Limit(pace/5), 1) // tries of one write
	money.limit = rate.NewLimiter(rate.Inf, 1)            // tried once
	money.Explain = func(status int, _ http.Header, body []byte) *procurement.Error {
		return explainProxySeller(status, body, true, hide)
	}
	p.writes, p.money = &writes, &money
	p.lane = &proxySellerLane{write: time.Duration(5 / pace * float64(time.Second)), money: time.Duration(10 / pace * float64(time.Second))}
}

// Name is what the operator called the provider.
func (p *proxySeller) Name() string { return p.name }

// Ready is false while the seller is left alone.
func (p *proxySeller) Ready() bool { return p.reads.Ready() }

// proxySellerLowerHex writes %2F as %2f, as some servers do that repeat a URL.
func proxySellerLowerHex(escaped string) string {
	b := []byte(escaped)
	for i := range b {
		if b[i] == '%' && i+2 < len(b) {
			copy(b[i:], strings.ToLower(string(b[i:i+3])))
		}
	}
	return string(b)
}

// get reads, as often as it takes.
func (p *proxySeller) get(ctx context.Context, path string, data any) error {
	return p.reads.call(ctx, safely, http.MethodGet, path, nil, &proxySellerAnswer{Data: data})
}

// ask is a read that the API wants as a POST: it buys and changes nothing.
func (p *proxySeller) ask(ctx context.Context, path string, in, data any) error {
	return p.reads.call(ctx, safely, http.MethodPost, path, in, &proxySellerAnswer{Data: data})
}

// change is a write: safely, when it may be repeated.
func (p *proxySeller) change(ctx context.Context, how repeat, method, path string, in, data any) error {
	ctx, cancel := context.WithTimeout(ctx, p.writes.Timeout)
	defer cancel()
	if err := p.lane.wait(ctx, false); err != nil {
		return err
	}
	return p.writes.call(ctx, how, method, path, in, &proxySellerAnswer{Data: data})
}

// spend is a call that may spend money, sent once. The seller knows no
// idempotency key; the id is for its logs and for ours.
func (p *proxySeller) spend(ctx context.Context, key, path string, in, data any) error {
	turn, cancel := context.WithTimeout(ctx, p.money.Timeout)
	defer cancel()
	if err := p.lane.wait(turn, true); err != nil {
		return err
	}
	return p.money.callWith(ctx, once, http.MethodPost, path, http.Header{"X-Request-Id": {key}}, in, &proxySellerAnswer{Data: data})
}

const errProxySellerShape = "the answer is not of a shape that is known"

// proxySellerOdd is an answer whose shape is not known: Ambiguous for a call that
// may have spent money.
func proxySellerOdd(c procurement.Class) error { return procurement.Refuse(c, errProxySellerShape) }
