package accounts

import (
	"errors"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sync/singleflight"

	"agentproxy/app/changes"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

// Config is what the operator decides about accounts.
type Config struct {
	TrialBalance domain.Money
	TrialDays    int
	// TrialDailyTotal is the most trial credit that is granted on a UTC day, and TrialPerNetwork the
	// number of trials of one network (account.Network); 0: unlimited.
	TrialDailyTotal domain.Money
	TrialPerNetwork int
	FundedFrom      account.Funding
	Registration    account.Registration // empty: open
	KeepOriginDays  int                  // how long the origin of a registration is kept; 0: it is not
	Exits           Exits
	Dev             bool // development mode: webhooks may use http
	PerMinute       int  // default rate limit of an agent; 0: unlimited
	Bounds          Bounds
}

// Service is the use cases of accounts and their credentials.
type Service struct {
	cfg         Config
	store       ports.Unit[repos]
	clock       ports.Clock
	ids         ports.IDs
	secrets     ports.Secrets
	tokens      ports.Tokens
	transitions *sessions.Transitions
	hub         *changes.Hub
	cache       *agentCache
	reads       singleflight.Group // of agents, by their id, while the cache may be stale
	uses        keyUses
	unusedUpTo  atomic.Int64 // the registrations that were looked through for unused ones, in microseconds
	Keys        Keys
	SignIns     SignIns
}

// New returns the use cases. Their cache follows the changes of the hub.
func New(
	cfg Config, base ports.Base, tokens ports.Tokens, transitions *sessions.Transitions, hub *changes.Hub,
) *Service {
	a := &Service{cfg: cfg, store: narrow(base.Store), clock: base.Clock, ids: base.IDs, secrets: base.Secrets,
		tokens: tokens, transitions: transitions, hub: hub, cache: newAgentCache()}
	a.Keys, a.SignIns = Keys{a}, SignIns{a}
	hub.Watch(a.cache)
	return a
}

// notFoundIs returns another error in place of account.ErrNotFound.
func notFoundIs(err, instead error) error {
	if errors.Is(err, account.ErrNotFound) {
		return instead
	}
	return err
}

// Exits reports whether traffic of agents leaves from an address. A nil function reports that for none.
type Exits struct {
	Sold  func(netip.Addr) bool // by the embedded provider
	Other func(netip.Addr) bool // of this host, and of configured upstream proxies
}

// Keys is the use cases of the API keys of accounts.
type Keys struct{ a *Service }

// SignIns is the use cases of people who sign in with an API key of the account. A sign-in is good on
// every replica for SignInLifetime, until it is ended, the API secret is rotated, or the key ends.
type SignIns struct{ a *Service }
