package accounts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

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

// AuthModes lists every mode.
var AuthModes = []AuthMode{ByAPIKey, ByToken}

// Caller is the agent that makes a request, and what it may do.
type Caller struct {
	AgentID   string
	Mode      AuthMode
	Scopes    []account.Scope
	PerMinute int  // rate limit; 0: unlimited
	Trial     bool // the bounds of accounts on trial hold: not in development mode, and up to a minute after it paid
	agent     *knownAgent
	token     ports.Token // of ByToken
	key       *knownKey   // nil for a token of an early version
}

// TrialNetwork returns the network that an account on trial registered from; empty for others, and where it is
// not known.
func (c Caller) TrialNetwork() string {
	if c.agent == nil {
		return ""
	}
	return c.agent.network
}

// KeyTag names the key of the caller among the keys of its agent, for what ends with the key.
func (c Caller) KeyTag() []byte {
	if c.key == nil {
		return nil
	}
	return c.key.tag()
}

// Limits returns what restricts the key of the caller.
func (c Caller) Limits() account.Limits {
	if c.key == nil {
		return account.Limits{}
	}
	return c.key.Limits
}

// Spender returns the key of the caller, for whose budget counts what it buys. A first key that was replaced buys as
// the first one.
func (c Caller) Spender() account.Spender {
	if c.key == nil {
		return account.Spender{}
	}
	l := c.key.Limits
	by := account.Spender{KeyID: c.key.ID, Name: c.key.Name, Restricted: l.Restricted(), Own: l.Own}
	if c.key.Replaced {
		by.KeyID, by.Name = account.FirstKeyID(c.AgentID), account.FirstKeyName
	}
	return by
}

// MayAsFree returns account.ErrKeyRestricted for the caller with a restricted key.
func (c Caller) MayAsFree() error {
	if c.Limits().Restricted() {
		return account.ErrKeyRestricted
	}
	return nil
}

// errReplacedKey is returned for a key in its grace, and for a token of one.
var errReplacedKey = account.ErrScope.Msgf("this key was replaced and changes no credentials; use the new one")

// MayChangeCredentials refuses a key that was replaced, with account.ErrScope, and a restricted one, with
// account.ErrKeyRestricted.
func (c Caller) MayChangeCredentials() error {
	if c.key != nil && c.key.Replaced {
		return errReplacedKey
	}
	return c.MayAsFree()
}

// May refuses with account.ErrScope.
func (c Caller) May(s account.Scope) error {
	if len(c.Scopes) == len(account.Scopes) || slices.Contains(c.Scopes, s) {
		return nil
	}
	return account.ErrScope.With("required", string(s))
}

// AuthenticateKey finds the caller of an API key. It reads memory only, unless
// the key was not used lately. For one without a tag, of an early version or made up, allowLookup is called
// then, as its client may have guessed, and its error is returned; nil always allows. The caller of a
// disabled account comes with account.ErrDisabled.
func (s *Service) AuthenticateKey(ctx context.Context, key string, allowLookup func() error) (Caller, error) {
	if !strings.HasPrefix(key, account.APIKeyPrefix) || len(key) > maxCredential {
		return Caller{}, account.ErrInvalidKey
	}
	hashes := s.secrets.Hashes(key)
	found, known := s.cache.keys.GetIfPresent(string(hashes[0]))
	if !known {
		var err error
		if found, err = unusedKey(ctx, s, key, hashes, allowLookup); err != nil {
			return Caller{}, notFoundIs(err, account.ErrInvalidKey)
		}
	}
	agent, err := s.agentByID(ctx, found.agentID)
	if err != nil {
		return Caller{}, notFoundIs(err, account.ErrInvalidKey)
	}
	k := agent.key(found.hash)
	if k == nil || !k.Expires.IsZero() && k.Expired(s.clock.Now()) {
		return Caller{}, account.ErrInvalidKey
	}
	s.uses.add(k)
	c, err := s.caller(agent, ByAPIKey, k.Grants())
	c.key = k
	return c, err
}

// unusedKey finds a key that is not in memory. One that has a tag was issued, and is looked up however many guesses
// came from the same address; where it is not found it was replaced or deleted for good.
func unusedKey(ctx context.Context, a *Service, key string, hashes [][]byte, allowLookup func() error) (
	cachedKey, error) {
	if a.secrets.IsTagged(key) {
		if _, ended := a.cache.ended.GetIfPresent(string(hashes[0])); ended {
			return cachedKey{}, account.ErrInvalidKey
		}
		found, err := a.lookUpKey(ctx, hashes)
		if errors.Is(err, account.ErrNotFound) {
			a.cache.ended.Set(string(hashes[0]), struct{}{})
		}
		return found, err
	}
	if allowLookup != nil {
		if err := allowLookup(); err != nil {
			return cachedKey{}, err
		}
	}
	if !account.MayBeEarlyKey(key) {
		return cachedKey{}, account.ErrInvalidKey
	}
	return a.lookUpKey(ctx, hashes)
}

// maxCredential bounds the length of a credential; none that is issued is longer.
const maxCredential = 4096

// AuthenticateToken finds the caller of a Bearer token.
func (s *Service) AuthenticateToken(ctx context.Context, text string) (Caller, error) {
	if len(text) > maxCredential {
		return Caller{}, account.ErrExpiredToken
	}
	token, err := s.tokens.Read(text, s.clock.Now())
	if err != nil {
		return Caller{}, err
	}
	agent, err := s.agentByID(ctx, token.AgentID)
	if err != nil {
		return Caller{}, notFoundIs(err, account.ErrExpiredToken)
	}
	if token.Version != agent.TokenVersion {
		return Caller{}, account.ErrExpiredToken
	}
	k := agent.keyByTag(token.Key, s.clock.Now())
	if k == nil && len(token.Key) > 0 {
		return Caller{}, account.ErrExpiredToken
	}
	c, err := s.caller(agent, ByToken, token.Scopes)
	c.token, c.key = token, k
	return c, err
}

func (s *Service) caller(agent *knownAgent, mode AuthMode, scopes []account.Scope) (Caller, error) {
	c := Caller{AgentID: agent.ID, Mode: mode, Scopes: scopes, PerMinute: s.perMinute(agent.Agent),
		Trial: agent.trial, agent: agent}
	if agent.Status != account.Active {
		return c, account.ErrDisabled
	}
	return c, nil
}

// Ends returns when the credential of a caller ends by itself: with its token or with its key. Zero is never.
func (c Caller) Ends() (at time.Time) {
	if c.key != nil {
		at = c.key.Expires
	}
	if c.Mode == ByToken && (at.IsZero() || c.token.Expires.Before(at)) {
		at = c.token.Expires
	}
	return at
}

// Live returns the refusal of the credential of a caller that has ended since it called. It reads memory, unless
// the agent changed.
func Live(ctx context.Context, a *Service, c Caller) error {
	agent, err := a.agentByID(ctx, c.AgentID)
	ended := account.ErrInvalidKey
	if c.Mode == ByToken {
		ended = account.ErrExpiredToken
	}
	now := a.clock.Now()
	switch {
	case err != nil:
		return notFoundIs(err, ended)
	case agent.Status != account.Active:
		return account.ErrDisabled
	case c.Mode == ByToken && (c.token.Version != agent.TokenVersion || !now.Before(c.token.Expires)):
		return ended
	case c.key == nil: // of a token of an early version
		return nil
	}
	if k := agent.key(c.key.Hash); k == nil || k.Expired(now) {
		return ended
	}
	return nil
}

// IssueToken asks for a Bearer token.
type IssueToken struct {
	APIKey    string
	APISecret string
	Scopes    []account.Scope // none: those of the key
	// AllowLookup is as of AuthenticateKey; nil always allows.
	AllowLookup func() error
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
func (s *Service) IssueToken(ctx context.Context, in IssueToken) (IssuedToken, error) {
	if _, err := account.CheckScopes(in.Scopes); err != nil {
		return IssuedToken{}, err
	}
	wrong := account.ErrInvalidKey.Msgf("the api_key and the api_secret do not belong together; check both")
	c, err := s.AuthenticateKey(ctx, in.APIKey, in.AllowLookup)
	// The secret is compared for a disabled account too: without it the answer would
	// confirm that the key is right.
	if c.AgentID == "" {
		if e, ok := err.(*domain.Error); ok && e.Is(account.ErrInvalidKey) {
			return IssuedToken{}, wrong
		}
		return IssuedToken{}, err
	}
	if len(in.APISecret) > maxCredential || !s.secrets.Same(in.APISecret, c.agent.SecretHash) {
		return IssuedToken{}, wrong
	}
	if err != nil {
		return IssuedToken{}, err
	}
	scopes, err := account.Downscope(in.Scopes, c.Scopes)
	if err != nil {
		return IssuedToken{}, err
	}
	return s.sign(c, scopes, s.clock.Now())
}

// TokenLifetime is how long a Bearer token lives.
const TokenLifetime = time.Hour

// TokenChainLifetime is how long after a token was issued for a key the tokens that it was refreshed to
// end: a stolen token cannot be refreshed without end.
const TokenChainLifetime = 24 * time.Hour

// RefreshToken signs a new token with the permissions of the caller's. Near the end of the chain it
// lives less than TokenLifetime.
func (s *Service) RefreshToken(c Caller) (IssuedToken, error) {
	if c.Mode != ByToken {
		return IssuedToken{}, account.ErrExpiredToken.Msgf("only a live token can be refreshed; send it as " +
			"Authorization: Bearer")
	}
	return s.sign(c, c.Scopes, c.token.Since)
}

// sign signs a token of a chain that began at since.
func (s *Service) sign(c Caller, scopes []account.Scope, since time.Time) (IssuedToken, error) {
	now := s.clock.Now()
	life := min(TokenLifetime, since.Add(TokenChainLifetime).Sub(now))
	if c.key != nil && !c.key.Expires.IsZero() {
		life = min(life, c.key.Expires.Sub(now).Truncate(time.Second))
	}
	if life < time.Second {
		return IssuedToken{}, account.ErrExpiredToken.Msgf(
			"the token was refreshed for %d hours; get a new one with your API key and secret",
			int(TokenChainLifetime/time.Hour))
	}
	text, err := s.tokens.Sign(ports.Token{AgentID: c.AgentID, Version: c.agent.TokenVersion, Key: c.KeyTag(),
		Since: since, Scopes: scopes, Expires: now.Add(life)}, now)
	return IssuedToken{Text: text, Expires: life, AgentID: c.AgentID, Name: c.agent.Name, Scopes: scopes}, err
}

// lookUpKey finds the agent of a key by its hashes. Of callers at once one reads the database.
func (s *Service) lookUpKey(ctx context.Context, hashes [][]byte) (cachedKey, error) {
	return s.cache.keys.Load(ctx, string(hashes[0]),
		func(ctx context.Context, _ string) (found cachedKey, err error) {
			err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
				for _, hash := range hashes {
					var id string
					if id, err = tx.Keys().Owner(ctx, hash); !errors.Is(err, account.ErrNotFound) {
						found = cachedKey{id, hash}
						return err
					}
				}
				return err
			})
			return found, err
		})
}

type uncheckedKey struct{}

// Unchecked returns a context in which credentials in memory suffice while the database is away,
// for calls that change nothing and reveal nothing of an agent: they may have been revoked
// meanwhile.
func Unchecked(ctx context.Context) context.Context {
	return context.WithValue(ctx, uncheckedKey{}, true)
}

// agentByID returns the agent of an id, from memory where possible: not when a change may be
// unknown, unless the call is Unchecked.
func (s *Service) agentByID(ctx context.Context, id string) (*knownAgent, error) {
	if s.hub.Stale() && ctx.Value(uncheckedKey{}) == nil {
		// Calls that come meanwhile share the read: where the feed of changes is late the store is
		// slow, and a read for each call would take all of its connections.
		read, err, _ := s.reads.Do(id, func() (any, error) { return s.readAgent(context.WithoutCancel(ctx), id) })
		if err != nil {
			return nil, err
		}
		return read.(*knownAgent), nil
	}
	key := cachedAgent{s.cache.since.Load(), id}
	return s.cache.agents.Load(ctx, key,
		func(ctx context.Context, key cachedAgent) (*knownAgent, error) { return s.readAgent(ctx, key.id) })
}

// readAgent reads an agent and its keys.
func (s *Service) readAgent(ctx context.Context, id string) (agent *knownAgent, err error) {
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		found, err := tx.Agents().Get(ctx, id)
		if err != nil {
			return err
		}
		list, err := allKeys(ctx, tx, found)
		agent = &knownAgent{Agent: found}
		for _, k := range list {
			agent.keys = append(agent.keys, &knownKey{Key: k})
		}
		if err != nil || s.cfg.Dev {
			return err
		}
		w, err := tx.Ledger().Wallet(ctx, id)
		if s.TierOf(found, w) == account.TrialTier {
			agent.trial, agent.network = true, account.Network(found.Origin.Addr)
		}
		return err
	})
	return agent, err
}
