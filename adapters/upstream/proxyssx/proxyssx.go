// Package proxyssx sells traffic of proxies.sx.
package proxyssx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"time"

	"agentproxy/adapters/upstream/gateway"
	"agentproxy/adapters/upstream/kind"
	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// The units of proxies.sx. By the SDK, its cap is in GB of 1024 of its MB; that its MB
// is 2^20 bytes is unverified. The GB that is sold here is smaller, so that a key never
// stops before the traffic that was sold.
const (
	gigabyte = 1_000_000_000
	maxGB    = 1000
	megabyte = 1 << 20
)

// counterLag is a guess: the delay of the counter is not documented. A key works for half
// a minute after it was disabled, and open tunnels go on.
const counterLag = 5 * time.Minute

const defaultBase = "https://api.proxies.sx/v1"

var gatewayProfile = gateway.Named("proxies.sx")

// Config is an account as the operator writes it.
type Config struct {
	kind.Common        // its Locations are the seller's spellings of countries
	APIKey      string `secret:"api_key" required:"true" help:"the API key of the reseller, psx_…"`
	Username    string `option:"username" required:"true" help:"the proxy user name of the reseller, psx_…"`
	Network     string `option:"network" help:"any, mbl, peer or best; any unless set"`
	Tier        string `option:"tier" help:"the qualityTier of new keys: safe or standard"`
	Host        string `option:"host" help:"another host of the gateway than gw.proxies.sx"`
	Port        string `option:"port" help:"another port; it is taken for both protocols"`
	Protocol    string `option:"protocol" help:"http or socks5, for sessions without a protocol"`
}

// Kind is the kind of these providers.
var Kind = kind.Of("proxyssx", New)

// Validate returns an error that names every invalid setting and no secret.
func (c Config) Validate() error {
	_, err := c.account()
	return err
}

func (c Config) account() (gateway.Account, error) {
	a, err := gatewayProfile.Account(gateway.Login{Username: c.Username, Network: c.Network, Host: c.Host, Port: c.Port,
		Protocol: c.Protocol, Places: c.Locations})
	if c.Tier != "" && c.Tier != "safe" && c.Tier != "standard" {
		err = errors.Join(err, errors.New("options.tier must be safe or standard"))
	}
	if c.Tier == "safe" && a.Options["network"] == "peer" {
		err = errors.Join(err, errors.New("options.tier safe has no peers: the gateway would sell modems instead"))
	}
	return a, err
}

// Provider sells traffic of proxies.sx by pool keys. Each key has its own cap, at which
// it disables itself, and is the password at the seller's gateway. The gateway accepts
// a key for half a minute after it was disabled or deleted, and keeps open tunnels, so
// that a little more than the cap may pass.
//
// Sources: packages/sdk and docs of https://github.com/bolivian-peru/proxy-reseller-kit ,
// and https://api.proxies.sx/docs/gateway . The list of keys is read as a whole, within
// the 4 MiB of an answer: about 10,000 keys.
type Provider struct {
	name, tier string
	api        *rest.Client
	account    gateway.Account
	now        func() time.Time
}

var (
	_ ports.Dynamic = (*Provider)(nil)
	_ ports.Lister  = (*Provider)(nil)
)

// New returns a provider, or the error of Validate.
func New(c Config) (*Provider, error) {
	a, err := c.account()
	if err != nil {
		return nil, err
	}
	api := kind.API(&c, defaultBase)
	api.Header, api.HideLike = http.Header{"X-Api-Key": {c.APIKey}}, keySecret
	return &Provider{name: c.Name, tier: c.Tier, account: a, now: time.Now, api: rest.New(api)}, nil
}

// Name returns the name that the operator chose.
func (p *Provider) Name() string { return p.name }

// Ready returns false while the circuit breaker is open.
func (p *Provider) Ready() bool { return p.api.Ready() }

// Capabilities describes pool keys.
func (p *Provider) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Workers: true, Idempotent: true, KeepsOrderKey: true, Cancels: true,
		Direct: true, CapUnit: gigabyte, CounterLag: counterLag}
}

// Balance returns an unknown balance: the API documents no call for it.
func (p *Provider) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// Order creates a pool key, which costs nothing by itself. The seller stores the
// Idempotency-Key for 24 hours.
func (p *Provider) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	gb, err := p.check(in)
	if err != nil {
		return procurement.Delivery{}, err
	}
	if !idempotencyKey.MatchString(in.Key) {
		return procurement.Delivery{}, procurement.Refuse(procurement.Invalid, "the key of the order does not fit an "+
			"Idempotency-Key")
	}
	body := map[string]any{"label": in.Key, "trafficCapGB": gb}
	if p.tier != "" {
		body["qualityTier"] = p.tier
	}
	var k poolKey
	header := http.Header{"Idempotency-Key": {in.Key}, "X-Request-Id": {in.Key}}
	if err := p.api.CallWith(ctx, rest.Once, http.MethodPost, "/reseller/pool-keys", header, body, &k); err != nil {
		return procurement.Delivery{}, err
	}
	d, err := p.delivery(k)
	if err != nil || d.Label != in.Key {
		return procurement.Delivery{}, procurement.Refuse(procurement.Ambiguous, "the answer is not the key that "+
			"was asked for")
	}
	return d, nil
}

// check returns the traffic of an intent in GB. It fails if the intent cannot be
// delivered.
func (p *Provider) check(in procurement.Intent) (int64, error) {
	if in.Type == session.Static {
		return 0, procurement.Refuse(procurement.Unsupported, "pool keys are traffic, not addresses")
	}
	if _, err := gatewayProfile.Endpoint(p.account, procurement.Target{Location: in.Location}); err != nil {
		return 0, err
	}
	return capGB(in.Bytes)
}

// capGB returns a number of bytes in GB, rounded up. It fails with Invalid if that is
// not 1 to maxGB.
func capGB(bytes int64) (int64, error) {
	if bytes < 1 || bytes > maxGB*gigabyte {
		return 0, procurement.Refuse(procurement.Invalid, fmt.Sprintf("a cap is 1 to %d GB, not %d bytes", maxGB, bytes))
	}
	return (bytes + gigabyte - 1) / gigabyte, nil
}

// Read returns a pool key.
func (p *Provider) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	k, err := p.read(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	return p.delivery(k)
}

func (p *Provider) read(ctx context.Context, ref string) (k poolKey, err error) {
	path, err := keyPath(ref)
	if err != nil {
		return k, err
	}
	if err := p.api.Call(ctx, rest.Safely, http.MethodGet, path, nil, &k); err != nil {
		return k, err
	}
	if k.ID != ref {
		return k, errShape
	}
	return k, nil
}

// Cancel deletes a pool key. An unknown one is not an error.
func (p *Provider) Cancel(ctx context.Context, ref string) error {
	path, err := keyPath(ref)
	if err == nil {
		err = p.api.Call(ctx, rest.Safely, http.MethodDelete, path, nil, nil)
	}
	if procurement.ClassOf(err) == procurement.NotFound {
		return nil
	}
	return err
}

// Disable disables a pool key.
func (p *Provider) Disable(ctx context.Context, ref string) error {
	path, err := keyPath(ref)
	if err != nil {
		return err
	}
	var k poolKey
	if err := p.api.Call(ctx, rest.Safely, http.MethodPatch, path, map[string]any{"enabled": false}, &k); err != nil {
		return err
	}
	if k.ID != ref || k.Enabled == nil || *k.Enabled {
		return errShape
	}
	return nil
}

// Usage returns the counter of a pool key, which is assumed to be of both directions.
func (p *Provider) Usage(ctx context.Context, ref string) (procurement.Usage, error) {
	k, err := p.read(ctx, ref)
	if procurement.ClassOf(err) == procurement.NotFound {
		return procurement.Usage{AsOf: p.now().UTC(), Gone: true}, nil
	}
	if err != nil {
		return procurement.Usage{}, err
	}
	if k.TrafficUsedMB == nil || *k.TrafficUsedMB < 0 || *k.TrafficUsedMB > math.MaxInt64/megabyte/2 {
		return procurement.Usage{}, errShape
	}
	return procurement.Usage{Bytes: int64(*k.TrafficUsedMB * megabyte), AsOf: p.now().UTC()}, nil
}

// Endpoint returns the gateway with a pool key as the password.
func (p *Provider) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	if !keyForm.MatchString(a.Password) {
		return procurement.Endpoint{}, procurement.Refuse(procurement.Invalid, "the access has no pool key")
	}
	own := p.account
	own.Password = a.Password
	return gatewayProfile.Endpoint(own, t)
}

// NewExit returns the zero Exit: another token gets another exit.
func (p *Provider) NewExit(procurement.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, nil
}

// poolKey is a pool key of the API. Pointers are nil for missing fields.
type poolKey struct {
	ID            string   `json:"id"`
	Key           string   `json:"key"`
	Label         string   `json:"label"`
	Enabled       *bool    `json:"enabled"`
	TrafficCapGB  *int64   `json:"trafficCapGB"` // null: a partner's key without a cap
	TrafficUsedMB *float64 `json:"trafficUsedMB"`
	IsExpired     bool     `json:"isExpired"`
	CreatedAt     int64    `json:"createdAt"` // milliseconds
}

var (
	errShape       = procurement.Refuse(procurement.Temporary, "the answer is not of a shape that is known")
	keyForm        = regexp.MustCompile(`^pak_[A-Za-z0-9]+$`)
	keySecret      = regexp.MustCompile(`pak_[A-Za-z0-9]*`)
	idForm         = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	idempotencyKey = regexp.MustCompile(`^[A-Za-z0-9_-]{8,128}$`)
)

// keyPath returns the path of a pool key. It fails with NotFound for a ref that cannot
// be an id.
func keyPath(ref string) (string, error) {
	if !idForm.MatchString(ref) {
		return "", procurement.Refuse(procurement.NotFound, "no key has such an id")
	}
	return "/reseller/pool-keys/" + ref, nil
}

// delivery converts a pool key. A disabled one is Live: it exists, and keeps its
// counter.
func (p *Provider) delivery(k poolKey) (procurement.Delivery, error) {
	if !idForm.MatchString(k.ID) || !keyForm.MatchString(k.Key) || k.Label == "" ||
		k.TrafficCapGB != nil && (*k.TrafficCapGB < 0 || *k.TrafficCapGB > math.MaxInt64/gigabyte) {
		return procurement.Delivery{}, errShape
	}
	d := procurement.Delivery{Ref: k.ID, Label: k.Label, State: procurement.Live,
		Access: procurement.Access{User: p.account.Options["username"], Password: k.Key}}
	if k.IsExpired {
		d.State = procurement.Gone
	}
	if k.TrafficCapGB != nil {
		d.Access.CapBytes = *k.TrafficCapGB * gigabyte
	}
	if k.CreatedAt > 0 {
		d.CreatedAt = time.UnixMilli(k.CreatedAt).UTC()
	}
	return d, nil
}
