package accounts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

// AuthMode is the credential that a request came with.
type AuthMode string

// The credentials of a request.
const (
	ByAPIKey AuthMode = "api_key"
	ByToken  AuthMode = "token"
)

// Caller is the agent that makes a request, and what it may do.
type Caller struct {
	AgentID   string
	Mode      AuthMode
	Scopes    []account.Scope
	PerMinute int // rate limit; 0: unlimited
	agent     account.Agent
}

// May refuses with account.ErrScope.
func (c Caller) May(s account.Scope) error {
	if c.Mode == ByAPIKey || slices.Contains(c.Scopes, s) {
		return nil
	}
	return account.ErrScope.With("required", string(s))
}

// AuthenticateKey finds the caller of an API key. It reads memory only, unless
// the key was not seen lately. The caller of a disabled account comes with
// account.ErrDisabled.
func (a *Service) AuthenticateKey(ctx context.Context, key string) (Caller, error) {
	if !strings.HasPrefix(key, "ak_") || len(key) > maxCredential {
		return Caller{}, account.ErrInvalidKey
	}
	agent, err := a.agentByKey(ctx, a.secrets.Hashes(key))
	if err != nil {
		return Caller{}, notFoundIs(err, account.ErrInvalidKey)
	}
	return a.caller(agent, ByAPIKey, account.Scopes)
}

// maxCredential bounds the length of a credential; none that is issued is longer.
const maxCredential = 4096

// AuthenticateToken finds the caller of a Bearer token.
func (a *Service) AuthenticateToken(ctx context.Context, text string) (Caller, error) {
	if len(text) > maxCredential {
		return Caller{}, account.ErrExpiredToken
	}
	token, err := a.tokens.Read(text, a.clock.Now())
	if err != nil {
		return Caller{}, err
	}
	agent, err := a.agentByID(ctx, token.AgentID)
	if err != nil {
		return Caller{}, notFoundIs(err, account.ErrExpiredToken)
	}
	if token.Version != agent.TokenVersion {
		return Caller{}, account.ErrExpiredToken
	}
	return a.caller(agent, ByToken, token.Scopes)
}

func (a *Service) caller(agent account.Agent, mode AuthMode, scopes []account.Scope) (Caller, error) {
	c := Caller{AgentID: agent.ID, Mode: mode, Scopes: scopes, PerMinute: a.perMinute(agent), agent: agent}
	if agent.Status != account.Active {
		return c, account.ErrDisabled
	}
	return c, nil
}

// IssueToken asks for a Bearer token.
type IssueToken struct {
	APIKey    string
	APISecret string
	Scopes    []account.Scope // none: all
}

// IssuedToken is a Bearer token and its agent.
type IssuedToken struct {
	Text    string
	Expires time.Duration
	AgentID string
	Name    string
	Scopes  []account.Scope
}

// IssueToken checks the pair and signs a token. A wrong pair is
// account.ErrInvalidKey.
func (a *Service) IssueToken(ctx context.Context, in IssueToken) (IssuedToken, error) {
	scopes, err := account.CheckScopes(in.Scopes)
	if err != nil {
		return IssuedToken{}, err
	}
	wrong := account.ErrInvalidKey.Msgf("the api_key and the api_secret do not belong together; check both")
	c, err := a.AuthenticateKey(ctx, in.APIKey)
	// The secret is compared for a disabled account too: without it the answer would
	// confirm that the key is right.
	if c.AgentID == "" {
		if e, ok := err.(*domain.Error); ok && e.Is(account.ErrInvalidKey) {
			return IssuedToken{}, wrong
		}
		return IssuedToken{}, err
	}
	if len(in.APISecret) > maxCredential || !a.secrets.Same(in.APISecret, c.agent.SecretHash) {
		return IssuedToken{}, wrong
	}
	if err != nil {
		return IssuedToken{}, err
	}
	return a.sign(c, scopes)
}

// RefreshToken signs a new token with the permissions of the caller's.
func (a *Service) RefreshToken(c Caller) (IssuedToken, error) {
	if c.Mode != ByToken {
		return IssuedToken{}, account.ErrExpiredToken.Msgf("only a live token can be refreshed; send it as Authorization: Bearer")
	}
	return a.sign(c, c.Scopes)
}

func (a *Service) sign(c Caller, scopes []account.Scope) (IssuedToken, error) {
	now := a.clock.Now()
	text, err := a.tokens.Sign(ports.Token{AgentID: c.AgentID, Version: c.agent.TokenVersion,
		Scopes: scopes, Expires: now.Add(TokenLife)}, now)
	return IssuedToken{Text: text, Expires: TokenLife, AgentID: c.AgentID, Name: c.agent.Name, Scopes: scopes}, err
}

// agentCache keeps the agents that called lately, so that a request costs no
// query. Which agent a key belongs to never changes; the agent itself is
// dropped when it changes, at once in this process and within a second in
// others, and otter discards a load that was under way meanwhile.
type agentCache struct {
	keys   *otter.Cache[string, string]
	agents *otter.Cache[cachedAgent, account.Agent]
	since  atomic.Uint64 // raised when anything may have changed
}

// cachedAgent is the key of an agent. Raising since invalidates every entry that
// was loaded, or is being loaded, before.
type cachedAgent struct {
	since uint64
	id    string
}

const (
	cachedAgents = 20_000
	cacheLife    = time.Minute
)

func newAgentCache() *agentCache {
	return &agentCache{
		keys: otter.Must(&otter.Options[string, string]{MaximumSize: cachedAgents}),
		agents: otter.Must(&otter.Options[cachedAgent, account.Agent]{MaximumSize: cachedAgents,
			ExpiryCalculator: otter.ExpiryWriting[cachedAgent, account.Agent](cacheLife)}),
	}
}

// agentByKey returns the agent of a key with one of the hashes, from memory where
// possible.
func (a *Service) agentByKey(ctx context.Context, hashes [][]byte) (account.Agent, error) {
	id, err := a.cache.keys.Get(ctx, string(hashes[0]), otter.LoaderFunc[string, string](
		func(ctx context.Context, _ string) (id string, err error) {
			err = a.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
				for _, hash := range hashes {
					var agent account.Agent
					if agent, err = tx.Agents().ByKey(ctx, hash); !errors.Is(err, account.ErrNotFound) {
						id = agent.ID
						return err
					}
				}
				return err
			})
			return id, err
		}))
	if err != nil {
		return account.Agent{}, err
	}
	return a.agentByID(ctx, id)
}

// agentByID returns the agent of an id, from memory where possible.
func (a *Service) agentByID(ctx context.Context, id string) (account.Agent, error) {
	key := cachedAgent{a.cache.since.Load(), id}
	return a.cache.agents.Get(ctx, key, otter.LoaderFunc[cachedAgent, account.Agent](
		func(ctx context.Context, key cachedAgent) (agent account.Agent, err error) {
			err = a.store.View(ctx, func(ctx context.Context, tx repos) error {
				agent, err = tx.Agents().Get(ctx, key.id)
				return err
			})
			return agent, err
		}))
}

// AgentChanged drops an agent.
func (c *agentCache) AgentChanged(id string) {
	if id == "" {
		c.since.Add(1)
		c.agents.InvalidateAll()
		return
	}
	c.agents.Invalidate(cachedAgent{c.since.Load(), id})
}

// SessionChanged does nothing: no session is kept here.
func (c *agentCache) SessionChanged(string) {}
