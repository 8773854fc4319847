// Package gateway sells the traffic of accounts at gateways: proxies that read from
// the user name or the password which exit is requested. Its profiles hold the grammar
// of each seller.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"agentproxy/adapters/upstream/kind"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Config is an account at a gateway as the operator writes it.
type Config struct {
	kind.Common
	Profile string `option:"profile" required:"true"` // one of Profiles
	Login
	Custom Custom // of CustomProfile alone
}

// Kind is the kind of these providers.
var Kind = kind.Of("gateway", New).Describe("profile", "the gateway: "+strings.Join(Profiles(), ", "))

// Validate returns an error that names every invalid setting.
func (c Config) Validate() error {
	_, err := c.account()
	return err
}

func (c Config) account() (Account, error) {
	_, a, err := c.resolve()
	return a, err
}

// resolve returns the profile and the checked account.
func (c Config) resolve() (p Profile, a Account, err error) {
	c.Places = c.Locations
	p, ok := profiles[c.Profile]
	var faults []error
	switch {
	case c.Profile == CustomProfile:
		var err error
		if p, err = c.Custom.profile(c.Login); err != nil {
			faults = append(faults, err)
		}
	case !ok:
		return p, a, fmt.Errorf("options.profile must be one of %v, not %q", Profiles(), c.Profile)
	default:
		for _, name := range kind.Given(c.Custom) {
			faults = append(faults, fmt.Errorf("options.%s means something to the profile custom alone", name))
		}
	}
	if len(faults) == 0 {
		a, err = p.Account(c.Login)
		faults = append(faults, err)
	}
	if c.BaseURL != "" {
		faults = append(faults, errors.New("a gateway has no API: use options.host for another address"))
	}
	return p, a, errors.Join(faults...)
}

// Provider sells the traffic of one account. Nothing is ordered: an order is the
// name of a session, and its credential is that of the account, which only the
// configuration holds. So the credential is neither stored with orders nor given to
// agents, and only the gateway's own meter caps the traffic.
type Provider struct {
	name    string
	profile Profile
	account Account
}

var _ ports.Dynamic = (*Provider)(nil)

// New returns a provider, or the error of Validate.
func New(c Config) (*Provider, error) {
	p, a, err := c.resolve()
	if err != nil {
		return nil, err
	}
	if p.unverified {
		c.Log.Warn("the grammar of this gateway is unverified: check it with the seller", "provider", c.Name, "profile",
			c.Profile)
	}
	return &Provider{name: c.Name, profile: p, account: a}, nil
}

// Name returns the name that the operator chose.
func (p *Provider) Name() string { return p.name }

// Capabilities describes a provider that does no IO and is reached through the
// seller's proxies.
func (p *Provider) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{InProcess: true, ViaUpstream: true, Workers: true}
}

// Ready always returns true: no API is called.
func (p *Provider) Ready() bool { return true }

// Offers returns nil: the operator's catalogue lists what is sold.
func (p *Provider) Offers(context.Context) ([]procurement.Offer, error) { return nil, nil }

// Balance returns an unknown balance.
func (p *Provider) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// Quote returns a cost of 0, because the seller charges for traffic later. It fails
// with Invalid if the grammar cannot express the place.
func (p *Provider) Quote(_ context.Context, in procurement.Intent) (procurement.Quote, error) {
	return procurement.Quote{Stock: procurement.StockUnknown}, p.check(in)
}

// Order returns the session's id as the ref if the grammar can express the place.
func (p *Provider) Order(_ context.Context, in procurement.Intent) (procurement.Delivery, error) {
	if err := p.check(in); err != nil {
		return procurement.Delivery{}, err
	}
	return procurement.Delivery{Ref: in.SessionID, State: procurement.Live}, nil
}

func (p *Provider) check(in procurement.Intent) error {
	if in.Type == session.Static {
		return procurement.Refuse(procurement.Unsupported, "a gateway sells traffic, not addresses")
	}
	_, err := p.Endpoint(procurement.Access{}, procurement.Target{Location: in.Location, Token: anyToken})
	return err
}

// anyToken is a token for a check whether an exit can be asked for.
const anyToken = "aaaaaaaa"

// Find returns nil: there is no list, and no order can be lost.
func (p *Provider) Find(context.Context, procurement.Intent) ([]procurement.Delivery, error) {
	return nil, nil
}

// Read returns what Order returned.
func (p *Provider) Read(_ context.Context, ref string) (procurement.Delivery, error) {
	return procurement.Delivery{Ref: ref, State: procurement.Live}, nil
}

// Cancel does nothing: an order costs nothing.
func (p *Provider) Cancel(context.Context, string) error { return nil }

// Disable always fails with Unsupported: one account serves all sessions.
func (p *Provider) Disable(context.Context, string) error { return errShared }

// Usage always fails with Unsupported, as Disable does.
func (p *Provider) Usage(context.Context, string) (procurement.Usage, error) {
	return procurement.Usage{}, errShared
}

var errShared = procurement.Refuse(procurement.Unsupported, "the sessions of a gateway share one account")

// Endpoint writes the target into the credential of the account. It ignores the
// Access, which is zero.
func (p *Provider) Endpoint(_ procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	return p.profile.Endpoint(p.account, t)
}

// NewExit returns the zero Exit: another token gets another exit.
func (p *Provider) NewExit(procurement.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, nil
}
