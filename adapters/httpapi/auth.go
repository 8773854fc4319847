package httpapi

import (
	"context"
	"net/http"
	"strings"

	"agentproxy/app/accounts"
	"agentproxy/domain/account"
)

// authenticate finds the caller of a request. What is sent as Bearer, a token or an API key, decides
// when X-API-Key is sent too; any other scheme is refused, whatever else is sent.
func (s *Server) authenticate(c *call) (err error) {
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
			return s.authenticateKey(ctx, c, token)
		}
		c.caller, err = s.Accounts.AuthenticateToken(ctx, token)
		return err
	}
	key := first(header, "X-Api-Key")
	if key == "" {
		return account.ErrInvalidKey
	}
	return s.authenticateKey(ctx, c, key)
}

func (s *Server) authenticateKey(ctx context.Context, c *call, key string) (err error) {
	g := guess{s: s, c: c}
	c.caller, err = s.Accounts.AuthenticateKey(ctx, key, g.allowLookup)
	return g.ended(err)
}

// first returns the first value of a header in canonical form.
func first(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}
