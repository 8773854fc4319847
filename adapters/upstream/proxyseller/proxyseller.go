// Package proxyseller sells addresses and residential traffic of Proxy-Seller.
package proxyseller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/upstream/gateway"
	"agentproxy/adapters/upstream/kind"
	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// defaultBase is the client API v2 of https://docs.proxy-seller.com/api-v2, without
// the key.
const defaultBase = "https://proxy-seller.com/personal/api/v2"

// readsPerSecond is the rate of reads, which is below both documented limits: 60 calls
// a minute for one key, and 1000. Calls that spend money have half of it, which is two
// seconds between calls.
const readsPerSecond = 1

// moneyTimeout is the timeout of calls that spend money, as in the official clients: the
// seller executes an order and a renewal before it answers, whether or not the client
// still waits.
const moneyTimeout = 120 * time.Second

// sections are what can be sold: addresses for a time, and residential traffic. The
// lists of other sections are not supported: IPv6 and mobile proxies share hosts, and
// a MIX is many orders in one.
var sections = []string{"isp", "ipv4", resident}

const resident = "resident"

// gatewayProfile is the grammar of the residential gateway.
var gatewayProfile = gateway.Named("proxyseller")

// Config is an account as the operator writes it.
type Config struct {
	// Common has the BaseURL of the API without the key. Its Locations are the seller's ids of places; for residential
	// traffic they are spellings. PerSecond is of reads and of writes, 0: readsPerSecond; calls that spend money have
	// at least moneyTimeout.
	kind.Common
	Key     string `secret:"key" required:"true" help:"the API key of the dashboard"`
	Section string `option:"section" help:"isp (default), ipv4, or resident for residential traffic"`
	Purpose string `option:"purpose" help:"what the proxies are for, in words; the seller requires it with every order of addresses"`
	Host    string `option:"host" help:"resident: res.proxy-seller.com (default), or us., asia. or asia2. before it"`
	Port    string `option:"port" help:"resident: 10000 (default)"`
}

// Kind is the kind of these providers.
var Kind = kind.Of("proxyseller", New)

// Validate returns an error that names every invalid setting and no secret.
func (c Config) Validate() error {
	var faults []error
	if c.Section != "" && !slices.Contains(sections, c.Section) {
		faults = append(faults, fmt.Errorf("options.section must be one of %v, not %q", sections, c.Section))
	}
	if c.Section == resident {
		return errors.Join(append(faults, c.checkTraffic()...)...)
	}
	return errors.Join(append(faults, c.checkAddresses()...)...)
}

// checkAddresses returns the faults of the settings for addresses.
func (c Config) checkAddresses() (faults []error) {
	if strings.TrimSpace(c.Purpose) == "" {
		faults = append(faults, errors.New("options.purpose is missing: a short text on what the proxies are for"))
	}
	for name, value := range map[string]string{"host": c.Host, "port": c.Port} {
		if value != "" {
			faults = append(faults, fmt.Errorf("options.%s is for the section resident only", name))
		}
	}
	for _, place := range slices.Sorted(maps.Keys(c.Locations)) {
		code, _, _ := strings.Cut(place, "/")
		if !country.Known(code) || c.Locations[place] == "" {
			faults = append(faults, fmt.Errorf("locations.%s must be a country (US) or a city of it (US/newyork), with an id",
				place))
		}
	}
	return faults
}

// checkTraffic returns the faults of the settings for residential traffic.
func (c Config) checkTraffic() (faults []error) {
	if c.Host != "" && !gateway.ValidHost(c.Host) {
		faults = append(faults, gateway.ErrHost)
	}
	if _, err := gateway.ParsePort(c.Port); err != nil {
		faults = append(faults, err)
	}
	return append(faults, gatewayProfile.CheckPlaces(c.Locations)...)
}

// account is an account at Proxy-Seller. Its key is a part of every URL, so that no
// URL is ever shown.
type account struct {
	name, section, purpose string
	places                 map[string]string // the seller's ids, by "US" or "US/newyork"
	log                    *slog.Logger
	// The four clients share their connections and circuit breaker. An undocumented
	// error is a refusal of a read or a write, and Ambiguous for money.
	reads, writes, money, asking *rest.Client
	pace                         *rest.Pace // of what is no read
	now                          func() time.Time
}

// New returns a provider of addresses or, for the section resident, of traffic. It
// fails with the error of Validate.
func New(c Config) (ports.Provider, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	a := &account{name: c.Name, section: c.Section, purpose: strings.TrimSpace(c.Purpose), places: c.Locations, log: c.Log,
		now: time.Now}
	if a.section == "" {
		a.section = sections[0]
	}
	a.connect(c)
	if a.section == resident {
		port, _ := gateway.ParsePort(c.Port)
		return &trafficProvider{account: a, host: c.Host, port: port}, nil
	}
	return &addressProvider{a}, nil
}

// connect creates the four clients of the API.
func (a *account) connect(c Config) {
	perSecond, escaped := cmp.Or(c.PerSecond, readsPerSecond), url.PathEscape(c.Key)
	api := kind.API(&c, defaultBase)
	api.Base, api.PerSecond, api.MoneyTimeout = api.Base+"/"+escaped, perSecond, max(c.Timeout, moneyTimeout)
	api.Hide = append(api.Hide, lowerHex(escaped), lowerHex(url.QueryEscape(c.Key)))
	a.reads = rest.New(api)
	access := &accessMemory{now: a.now}
	explained := func(u undocumented) func(int, http.Header, []byte) *procurement.Error {
		return func(status int, _ http.Header, body []byte) *procurement.Error {
			return access.explained(status, explain(status, body, u, a.redact))
		}
	}
	a.reads.Explain = explained(ofWrites)
	a.writes = a.reads.Paced(rest.NewPace(perSecond), nil)      // for attempts of one write
	a.money = a.reads.Paced(rest.Unpaced, explained(ofMoney))   // attempted once
	a.asking = a.reads.Paced(rest.Unpaced, explained(ofAsking)) // attempted once
	// Purchases are further apart than other writes, as in the official client
	// (https://github.com/proxy-seller/userApiGolang, ratelimit.go). Two limits in a row
	// would release calls in bursts.
	a.pace = rest.NewPace(perSecond).Slower(perSecond / 2)
}

// redact hides the key in a text.
func (a *account) redact(s string) string { return string(a.reads.Redact([]byte(s))) }

// Name returns the name that the operator chose.
func (a *account) Name() string { return a.name }

// Ready returns false while the circuit breaker is open.
func (a *account) Ready() bool { return a.reads.Ready() }

// lowerHex writes %2F as %2f, as some servers do that repeat a URL.
func lowerHex(escaped string) string {
	b := []byte(escaped)
	for i := range b {
		if b[i] == '%' && i+2 < len(b) {
			copy(b[i:], strings.ToLower(string(b[i:i+3])))
		}
	}
	return string(b)
}

// get makes a read.
func (a *account) get(ctx context.Context, path string, data any) error {
	return a.reads.Call(ctx, rest.Safely, http.MethodGet, path, nil, &envelope{Data: data})
}

// query makes a read that the API requires as a POST.
func (a *account) query(ctx context.Context, path string, in, data any) error {
	return a.reads.Call(ctx, rest.Safely, http.MethodPost, path, in, &envelope{Data: data})
}

// change makes a write that may be repeated.
func (a *account) change(ctx context.Context, method, path string, in, data any) error {
	ctx, cancel := context.WithTimeout(ctx, a.writes.Timeout)
	defer cancel()
	if err := a.pace.Wait(ctx, false); err != nil {
		return err
	}
	return a.writes.Call(ctx, rest.Safely, method, path, in, &envelope{Data: data})
}

// spend makes a call that may spend money, which is sent once. The seller has no
// idempotency key; the request id is for the logs of both sides.
func (a *account) spend(ctx context.Context, key, path string, in, data any) error {
	return a.once(ctx, a.money, key, path, in, data)
}

// sendOnce makes a call that spends no money and is sent once.
func (a *account) sendOnce(ctx context.Context, key, path string, in, data any) error {
	return a.once(ctx, a.asking, key, path, in, data)
}

func (a *account) once(ctx context.Context, c *rest.Client, key, path string, in, data any) error {
	turn, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := a.pace.Wait(turn, true); err != nil {
		return err
	}
	return c.CallWith(ctx, rest.Once, http.MethodPost, path, rest.RequestID(key), in, &envelope{Data: data})
}

const shapeReason = "the answer is not of a shape that is known"

// unexpected returns the error for an answer of an unknown shape. Its class is
// Ambiguous for a call that may have spent money.
func unexpected(c procurement.Class) error { return procurement.Refuse(c, shapeReason) }
