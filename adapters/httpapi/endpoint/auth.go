package endpoint

import (
	"context"
	"net/http"
	"strings"

	"agentproxy/app/accounts"
	"agentproxy/domain/account"
)

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
			return account.ErrInvalidKey.Msgf(
				"the only Authorization scheme is Bearer; send Authorization: Bearer, or the header X-API-Key",
			)
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
