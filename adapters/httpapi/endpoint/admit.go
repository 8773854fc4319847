package endpoint

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"agentproxy/adapters/httpapi/binding"
	"agentproxy/app/accounts"
	"agentproxy/domain/account"
	"agentproxy/domain/session"
)

// admit does what comes before the handler: credentials, limits, and the
// judgement of what was sent.
func (a *API) admit(c *Call) error {
	o := c.op
	if o.Open && o.Method != http.MethodGet && !c.inside && a.CrossSite != nil && a.CrossSite(c.gin.Request) {
		return ErrCrossSite
	}
	if !o.Open && !c.inside {
		if err := a.Identify(c); err != nil {
			return err
		}
		if o.Scope != "" {
			if err := c.Caller.May(o.Scope); err != nil {
				return err
			}
		}
	}
	if err := a.mayKey(c); err != nil {
		return err
	}
	if o.Stores {
		if err := a.mayStore(c); err != nil {
			return err
		}
	}
	if err := o.names.CheckQuery(c.gin.Request.URL.RawQuery); err != nil {
		return err
	}
	if o.Idempotent {
		if err := binding.CheckKeyHeader(c.gin.Request.Header); err != nil {
			return err
		}
	}
	if o.Before != nil {
		if err := o.Before(c); err != nil {
			return err
		}
	}
	if o.hasBody || o.Method != http.MethodGet && c.gin.Request.ContentLength != 0 {
		if err := a.readBody(c); err != nil {
			return err
		}
	}
	c.conn.Work()
	return nil
}

// mayStore refuses a call that adds rows for an agent that had as much stored as it may. A dry run adds none, and
// one under an Idempotency-Key may repeat an earlier call, which has its answer: it is refused where it is found to be
// the first.
func (a *API) mayStore(c *Call) error {
	if dry, _ := c.Query("dry_run"); dry == "true" {
		return nil
	}
	err := a.Limits.Stored.Check(c, c.Caller.AgentID)
	if err != nil && c.op.Idempotent && c.gin.GetHeader("Idempotency-Key") != "" {
		c.overBudget = err
		return nil
	}
	return err
}

// mayKey refuses a restricted key what its operation is not for.
func (a *API) mayKey(c *Call) error {
	limits := c.Caller.Limits()
	if c.op.Open || !limits.Restricted() {
		return nil
	}
	switch rule := c.op.Keys; {
	case rule == FreeKeys, rule == WholeKeys && limits.Own:
		return account.ErrKeyRestricted
	case rule == OwnSession:
		return a.Sees(c, c, c.gin.Param("session_id"))
	}
	return nil
}

// Sees returns session.ErrNotFound for a session that does not exist for the key of a call. Any other answer is left to
// who reads it.
func (a *API) Sees(ctx context.Context, c *Call, sessionID string) error {
	own := c.Caller.Spender().OwnKey()
	if own == "" {
		return nil
	}
	buyer, err := a.BoughtBy(ctx, c.Caller.AgentID, sessionID)
	if err == nil && buyer != own {
		err = session.ErrNotFound
	}
	return err
}

// Identify finds the caller of a request and counts it against the caller's limit.
func (a *API) Identify(c *Call) error {
	if err := a.authenticate(c); err != nil {
		return err
	}
	c.conn.Trust()
	return a.TakeRate(c)
}

// authenticate finds the caller of a request. What is sent as Bearer, a token or an API key, decides
// when X-API-Key is sent too; any other scheme is refused, whatever else is sent.
func (a *API) authenticate(c *Call) (err error) {
	ctx := context.Context(c)
	if c.op != nil && c.op.Scope == account.ProductsRead { // the list is the same for all
		ctx = accounts.Unchecked(ctx)
	}
	header := c.gin.Request.Header
	if authorization := first(header, "Authorization"); authorization != "" {
		scheme, token, _ := strings.Cut(authorization, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return account.ErrInvalidKey.Msgf("the only Authorization scheme is Bearer; send Authorization: Bearer, " +
				"or the header X-API-Key")
		}
		if token = strings.TrimSpace(token); strings.HasPrefix(token, account.APIKeyPrefix) {
			return a.authenticateKey(ctx, c, token)
		}
		c.Caller, err = a.Accounts.AuthenticateToken(ctx, token)
		return err
	}
	key := first(header, "X-Api-Key")
	if key == "" {
		return account.ErrInvalidKey
	}
	return a.authenticateKey(ctx, c, key)
}

func (a *API) authenticateKey(ctx context.Context, c *Call, key string) (err error) {
	g := a.Guess(c)
	c.Caller, err = a.Accounts.AuthenticateKey(ctx, key, g.AllowLookup)
	return g.Ended(err)
}

// first returns the first value of a header in canonical form.
func first(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Guess is a look-up of a key that may be wrong.
type Guess struct {
	api      *API
	call     *Call
	lookedUp bool
}

// Guess begins the look-up of a key that the request of a call may have wrong.
func (a *API) Guess(c *Call) *Guess { return &Guess{api: a, call: c} }

// AllowLookup refuses a look-up in the database after too many wrong keys of the client. A key that is
// in memory needs none.
func (g *Guess) AllowLookup() error {
	if d := g.api.Limits.WrongKeys().Left(g.api.ClientAddr(g.call.gin.Request)); !d.Allowed {
		return account.ErrRateLimited.Msgf(
			"too many wrong API keys from this address; wait for the seconds in Retry-After").After(d.RetryAfter)
	}
	g.lookedUp = true
	return nil
}

// Ended counts a look-up that found no key.
func (g *Guess) Ended(err error) error {
	if g.lookedUp && errors.Is(err, account.ErrInvalidKey) {
		g.api.Limits.WrongKeys().Record(g.api.ClientAddr(g.call.gin.Request))
	}
	return err
}

// ClientAddr returns the address of the client: the socket's or, behind
// proxies that the operator trusts, the nearest address in X-Forwarded-For that
// is none of theirs. Whatever else a client writes into that header counts for
// nothing.
func (a *API) ClientAddr(r *http.Request) netip.Addr {
	addr := PeerAddr(r)
	if !a.trusts(addr) {
		return addr
	}
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(forwarded) - 1; i >= 0; i-- {
		hop, ok := parseForwarded(forwarded[i])
		if !ok {
			break
		}
		addr = hop
		if !a.trusts(addr) {
			break
		}
	}
	return addr
}

// PeerAddr returns the address at the other end of the socket; invalid if it is not known.
func PeerAddr(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap().WithZone("")
}

func (a *API) trusts(addr netip.Addr) bool {
	for _, p := range a.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// parseForwarded reads one entry: an address, which some proxies write with its port.
func parseForwarded(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}
