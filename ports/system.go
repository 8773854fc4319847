package ports

import (
	"context"
	"time"

	"agentproxy/domain/account"
)

// Clock tells the time, in UTC at microsecond precision, which every store
// keeps: what is written is what is read back.
type Clock interface {
	Now() time.Time
}

// IDs makes ids: the prefix and at least 96 random bits as 20 lower case
// letters and digits.
type IDs interface {
	New(prefix string) string
}

// Secrets makes, hashes and derives secrets under the root secret of the
// service. None of them is stored.
type Secrets interface {
	// NewKey and NewSecret make an API key (ak_) and an API secret (sk_).
	NewKey() string
	NewSecret() string
	// Hash is the keyed hash of an API key or secret that is stored instead.
	Hash(secret string) []byte
	// Same compares a secret with a hash in constant time.
	Same(secret string, hash []byte) bool
	// ProxyPassword derives the password of a session.
	ProxyPassword(sessionID string) string
	// WebhookSecret derives the whsec_ secret of an agent's webhook.
	WebhookSecret(agentID string, version int64) string
	// Seal encrypts what is kept in the database. What it is for is part of the
	// seal: opened for anything else, it is an error.
	Seal(plain []byte, purpose string) []byte
	// Open decrypts what Seal made, under the same AGENTPROXY_SECRET.
	Open(sealed []byte, purpose string) ([]byte, error)
}

// Token is what a Bearer token says.
type Token struct {
	AgentID string
	Version int64 // of the secret it was issued for
	Scopes  []account.Scope
	Expires time.Time
}

// Tokens signs and reads Bearer tokens.
type Tokens interface {
	// Sign returns the signed text.
	Sign(t Token, now time.Time) (string, error)
	// Read is account.ErrExpiredToken for a text that is malformed, forged or
	// expired at now.
	Read(text string, now time.Time) (Token, error)
}

// Watcher is told of changes after they were committed, by this process at once
// and by others within a second. It must not block. An empty id means that
// anything may have changed.
type Watcher interface {
	AgentChanged(agentID string)
	SessionChanged(sessionID string)
}

// Prober opens one connection through a session's exit to the service's own
// echo.
type Prober interface {
	// Probe is PROVIDER_ERROR or PROVIDER_TIMEOUT when the exit does not work.
	Probe(ctx context.Context, sessionID string) (Probe, error)
}

// Probe is what the echo saw.
type Probe struct {
	ExitIP  string
	Latency time.Duration
}
