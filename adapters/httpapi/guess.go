package httpapi

import (
	"errors"

	"agentproxy/domain/account"
)

// guess is a look-up of a key that may be wrong.
type guess struct {
	api      *API
	call     *call
	lookedUp bool
}

// guess begins the look-up of a key that the request of a call may have wrong.
func (a *API) guess(c *call) *guess { return &guess{api: a, call: c} }

// allowLookup refuses a look-up in the database after too many wrong keys of the client. A key that is
// in memory needs none.
func (g *guess) allowLookup() error {
	if d := g.api.Limits.WrongKeys().Left(g.api.clientAddr(g.call.gin.Request)); !d.Allowed {
		return account.ErrRateLimited.Msgf(
			"too many wrong API keys from this address; wait for the seconds in Retry-After").After(d.RetryAfter)
	}
	g.lookedUp = true
	return nil
}

// ended counts a look-up that found no key.
func (g *guess) ended(err error) error {
	if g.lookedUp && errors.Is(err, account.ErrInvalidKey) {
		g.api.Limits.WrongKeys().Record(g.api.clientAddr(g.call.gin.Request))
	}
	return err
}
