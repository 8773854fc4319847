package endpoint

import (
	"errors"

	"agentproxy/domain/account"
)

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
