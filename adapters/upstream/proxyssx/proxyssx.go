package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"strings"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// The units of proxies.sx. Its cap is in GB of 1024 of its MB, by the SDK; that
// an MB is 2^20 bytes is unverified. A GB of ours is a little less, so that a key
// never stops before the traffic that was sold.
const (
	poolKeyGB    = 1_000_000_000
	poolKeyMaxGB = 1000
	poolKeyMB    = 1 << 20
)

var proxysSXKind = Kind{
	Secrets: []Field{{"api_key", true, "the API key of the reseller, psx_…"}},
	Options: []Field{
		{"username", true, "the proxy user name of the reseller, psx_…"},
		{"network", false, "any, mbl, peer or best; any unless set"},
		{"tier", false, "the qualityTier of new keys: safe or standard"},
		{"host", false, "another host of the gateway than gw.proxies.sx"},
		{"port", false, "another port; it is taken for both protocols"},
		{"protocol", false, "http or socks5, where a session does not tell"},
	},
	make: newPoolKeys,
}

// poolKeys sells traffic of proxies.sx by pool keys: each has a cap of its own
// at which it switches itself off, and is the password at their gateway. A key
// that is off or gone is let in for half a minute more, and open tunnels go on,
// so that a little more than the cap may pass.
//
// Sources: packages/sdk and docs of
// https://github.com/bolivian-peru/proxy-reseller-kit, and
// https://api.proxies.sx/docs/gateway. The seller's list of keys is read as a
// whole, within the 4 MiB of an answer: some ten thousand keys.
type poolKeys struct {
	*rest
	account gatewayAccount
	profile profile
	tier    string
}

var _ ports.Dynamic = (*poolKeys)(nil)

func newPoolKeys(s Spec, log *slog.Logger) (ports.Provider, error) {
	p := profiles["proxies.sx"]
	a, err := p.account(s)
	tier := s.Options["tier"]
	if tier != "" && tier != "safe" && tier != "standard" {
		err = errors.Join(err, errors.New("options.tier must be safe or standard"))
	}
	if tier == "safe" && a.options["network"] == "peer" {
		err = errors.Join(err, errors.New("options.tier safe has no peers: the gateway would sell modems instead"))
	}
	if err != nil {
		return nil, err
	}
	if s.BaseURL == "" {
		s.BaseURL = "https://api.proxies.sx/v1"
	}
	key := s.Secrets["api_key"]
	return &poolKeys{account: a, profile: p, tier: tier, rest: newREST(restConfig{
		Name: s.Name, Base: strings.TrimSuffix(s.BaseURL, "/"), Header: http.Header{"X-Api-Key": {key}},
		Hide: []string{key}, HideLike: poolKeySecret, PerSecond: s.PerSecond, Timeout: s.Timeout, Log: log,
	})}, nil
}

// Name is the operator's.
func (p *poolKeys) Name() string { return p.rest.Name }

// Capabilities describes pool keys.
func (p *poolKeys) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Idempotent: true, KeepsOrderKey: true, Cancels: true, Direct: true,
		CapUnit: poolKeyGB}
}

// Balance is not told: the API documents no call for it.
func (p *poolKeys) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// Order makes a pool key, which costs nothing by itself. The Idempotency-Key is
// remembered for 24 hours.
func (p *poolKeys) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	gb, err := p.check(in)
	if err != nil {
		return procurement.Delivery{}, err
	}
	if !idempotencyKey.MatchString(in.Key) {
		return procurement.Delivery{}, procurement.Refuse(procurement.Invalid, "the key of the order does not fit an Idempotency-Key")
	}
	body := map[string]any{"label": in.Key, "trafficCapGB": gb}
	if p.tier != "" {
		body["qualityTier"] = p.tier
	}
	var k poolKey
	header := http.Header{"Idempotency-Key": {in.Key}, "X-Request-Id": {in.Key}}
	if err := p.callWith(ctx, once, http.MethodPost, "/reseller/pool-keys", header, body, &k); err != nil {
		return procurement.Delivery{}, err
	}
	d, err := p.delivery(k)
	if err != nil || d.Label != in.Key {
		return procurement.Delivery{}, procurement.Refuse(procurement.Ambiguous, "the answer is not the key that was asked for")
	}
	return d, nil
}

// check is what an intent's traffic is in GB, if it can be delivered at all.
func (p *poolKeys) check(in procurement.Intent) (int64, error) {
	if in.Type == session.Static {
		return 0, procurement.Refuse(procurement.Unsupported, "pool keys are traffic, not addresses")
	}
	if _, err := p.profile.endpoint(p.account, procurement.Target{Location: in.Location}); err != nil {
		return 0, err
	}
	return capGB(in.Bytes)
}

// capGB is a number of bytes in whole GB, rounded up.
func capGB(bytes int64) (int64, error) {
	if bytes < 1 || bytes > poolKeyMaxGB*poolKeyGB {
		return 0, procurement.Refuse(procurement.Invalid, fmt.Sprintf("a cap is 1 to %d GB, not %d bytes", poolKeyMaxGB, bytes))
	}
	return (bytes + poolKeyGB - 1) / poolKeyGB, nil
}

// Find lists the keys that carry the order's key as their label.
func (p *poolKeys) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	var all *[]poolKey
	if err := p.call(ctx, safely, http.MethodGet, "/reseller/pool-keys", nil, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, errPoolKeyShape
	}
	var found []procurement.Delivery
	for _, k := range *all {
		if k.ID == "" || k.Label == "" {
			return nil, errPoolKeyShape // a list that is not understood proves nothing
		}
		if k.Label != in.Key {
			continue
		}
		d, err := p.delivery(k)
		if err != nil {
			return nil, err
		}
		found = append(found, d)
	}
	return found, nil
}

// Read tells how a key stands.
func (p *poolKeys) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	k, err := p.read(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	return p.delivery(k)
}

func (p *poolKeys) read(ctx context.Context, ref string) (k poolKey, err error) {
	path, err := poolKeyPath(ref)
	if err != nil {
		return k, err
	}
	if err := p.call(ctx, safely, http.MethodGet, path, nil, &k); err != nil {
		return k, err
	}
	if k.ID != ref {
		return k, errPoolKeyShape
	}
	return k, nil
}

// Cancel deletes a key. One that is not there is deleted.
func (p *poolKeys) Cancel(ctx context.Context, ref string) error {
	path, err := poolKeyPath(ref)
	if err == nil {
		err = p.call(ctx, safely, http.MethodDelete, path, nil, nil)
	}
	if procurement.ClassOf(err) == procurement.NotFound {
		return nil
	}
	return err
}

// Disable switches a key off.
func (p *poolKeys) Disable(ctx context.Context, ref string) error {
	path, err := poolKeyPath(ref)
	if err != nil {
		return err
	}
	var k poolKey
	if err := p.call(ctx, safely, http.MethodPatch, path, map[string]any{"enabled": false}, &k); err != nil {
		return err
	}
	if k.ID != ref || k.Enabled == nil || *k.Enabled {
		return errPoolKeyShape
	}
	return nil
}

// Usage is what the seller counted, in both directions as far as is known.
func (p *poolKeys) Usage(ctx context.Context, ref string) (procurement.Usage, error) {
	k, err := p.read(ctx, ref)
	if procurement.ClassOf(err) == procurement.NotFound {
		return procurement.Usage{AsOf: time.Now().UTC(), Gone: true}, nil
	}
	if err != nil {
		return procurement.Usage{}, err
	}
	if k.TrafficUsedMB == nil || *k.TrafficUsedMB < 0 || *k.TrafficUsedMB > math.MaxInt64/poolKeyMB/2 {
		return procurement.Usage{}, errPoolKeyShape
	}
	return procurement.Usage{Bytes: int64(*k.TrafficUsedMB * poolKeyMB), AsOf: time.Now().UTC()}, nil
}

// Endpoint is the gateway with a pool key as the password.
func (p *poolKeys) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	if !poolKeyForm.MatchString(a.Password) {
		return procurement.Endpoint{}, procurement.Refuse(procurement.Invalid, "the access has no pool key")
	}
	own := p.account
	own.password = a.Password
	return p.profile.endpoint(own, t)
}

// NewExit is the zero Exit: the next token is the next exit.
func (p *poolKeys) NewExit(procurement.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, nil
}

// poolKey is a key as the API tells it. Pointers tell what is missing.
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
	errPoolKeyShape = procurement.Refuse(procurement.Temporary, "the answer is not of a shape that is known")
	poolKeyForm     = regexp.MustCompile(`^pak_[A-Za-z0-9]+$`)
	poolKeySecret   = regexp.MustCompile(`pak_[A-Za-z0-9]*`)
	poolKeyID       = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	idempotencyKey  = regexp.MustCompile(`^[A-Za-z0-9_-]{8,128}$`)
)

// poolKeyPath is where a key is. What cannot be an id is not there.
func poolKeyPath(ref string) (string, error) {
	if !poolKeyID.MatchString(ref) {
		return "", procurement.Refuse(procurement.NotFound, "no key has such an id")
	}
	return "/reseller/pool-keys/" + ref, nil
}

// delivery is a key as an order of ours. One that is switched off is live: it is
// there, and can be switched on.
func (p *poolKeys) delivery(k poolKey) (procurement.Delivery, error) {
	if !poolKeyID.MatchString(k.ID) || !poolKeyForm.MatchString(k.Key) || k.Label == "" || k.TrafficCapGB != nil && (*k.TrafficCapGB < 0 || *k.TrafficCapGB > math.MaxInt64/poolKeyGB) {
		return procurement.Delivery{}, errPoolKeyShape
	}
	d := procurement.Delivery{Ref: k.ID, Label: k.Label, State: procurement.Live,
		Access: procurement.Access{User: p.account.options["username"], Password: k.Key}}
	if k.IsExpired {
		d.State = procurement.Gone
	}
	if k.TrafficCapGB != nil {
		d.Access.CapBytes = *k.TrafficCapGB * poolKeyGB
	}
	if k.CreatedAt > 0 {
		d.CreatedAt = time.UnixMilli(k.CreatedAt).UTC()
	}
	return d, nil
}
