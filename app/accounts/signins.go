package accounts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/domain"
	"agentproxy/ports"
)

// SignInLifetime is how long a person stays signed in. It is below idempotency.Retention, after which the
// keys that sign-ins are kept as are purged.
const SignInLifetime = 12 * time.Hour

// ErrSignedOut is returned for a sign-in that is unknown, over or ended.
var ErrSignedOut = &domain.Error{Kind: domain.Unauthorized, Code: "SIGNED_OUT",
	Message: "you are not signed in any more; sign in with an API key"}

// signIns is the path of the keys under which sign-ins are kept among the Idempotency-Keys, with no
// agent: a sign-in is found by itself alone. The key is a hash, so that the table opens nothing.
const signIns = "/console"

// Start signs in with an API key; allowLookup is as of AuthenticateKey. admit may refuse the caller
// before anything is stored. The token is returned only here.
func (s SignIns) Start(
	ctx context.Context, key string, allowLookup func() error, admit func(Caller) error,
) (token string, c Caller, err error) {
	c, err = s.a.AuthenticateKey(ctx, key, allowLookup)
	if err == nil {
		err = admit(c)
	}
	if err != nil {
		return "", c, err
	}
	token = s.a.ids.New("") + s.a.ids.New("")
	err = s.a.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.Idempotency().Keep(ctx, ports.Call{Path: signIns, Key: signInKey(token), Request: c.binding(),
			Resource: c.AgentID, Outcome: ports.InFlight, CreatedAt: s.a.clock.Now()})
	})
	return token, c, err
}

// Caller returns who signed in; ErrSignedOut if the token is no longer good. The caller of a disabled
// account comes with account.ErrDisabled.
func (s SignIns) Caller(ctx context.Context, token string) (Caller, error) {
	in, err := s.findLive(ctx, token)
	if err != nil {
		return Caller{}, err
	}
	agent, err := s.a.agentByID(ctx, in.Resource)
	if err != nil {
		return Caller{}, notFoundIs(err, ErrSignedOut)
	}
	version := binary.BigEndian.AppendUint64(nil, uint64(agent.TokenVersion))
	hash, same := bytes.CutPrefix(in.Request, version)
	k := agent.key(hash)
	if !same || k == nil || !k.Expires.IsZero() && k.Expired(s.a.clock.Now()) {
		return Caller{}, ErrSignedOut
	}
	c, err := s.a.caller(agent, ByAPIKey, k.Grants())
	c.key = k
	return c, err
}

// End ends a sign-in; repeating it is not an error.
func (s SignIns) End(ctx context.Context, token string) error {
	in, err := s.findLive(ctx, token)
	switch {
	case errors.Is(err, ErrSignedOut):
		return nil
	case err != nil:
		return err
	}
	return s.a.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.Idempotency().SetOutcome(ctx, "", signIns, in.Key, in.Resource, ports.Ended)
	})
}

// findLive returns a sign-in that was not ended and is not too old.
func (s SignIns) findLive(ctx context.Context, token string) (in ports.Call, err error) {
	if token == "" || len(token) > maxCredential {
		return in, ErrSignedOut
	}
	now := s.a.clock.Now()
	var found bool
	err = s.a.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		in, found, err = tx.Idempotency().Find(ctx, "", signIns, signInKey(token), now.Add(-idempotency.Retention))
		return err
	})
	if err == nil && (!found || in.Outcome != ports.InFlight || now.Sub(in.CreatedAt) >= SignInLifetime) {
		err = ErrSignedOut
	}
	return in, err
}

// signInKey returns the key of a sign-in.
func signInKey(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// binding returns what a sign-in is bound to: the generation of the API secret, and the key.
func (c Caller) binding() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(c.agent.TokenVersion)), c.key.Hash...)
}
