package ports

import (
	"time"

	"agentproxy/domain/account"
)

// Token is the content of a Bearer token.
type Token struct {
	AgentID string
	Version int64 // of the secret it was issued for
	// Key is the beginning of the hash of the key that it was issued for, with which it ends; empty in tokens of
	// early versions.
	Key     []byte
	Scopes  []account.Scope
	Since   time.Time // when the first token was issued that this one was refreshed from, in whole seconds
	Expires time.Time
}

// Tokens signs and reads Bearer tokens.
type Tokens interface {
	// Sign returns the signed text.
	Sign(t Token, now time.Time) (string, error)
	// Read verifies a token. It returns account.ErrExpiredToken for a text that is malformed, forged or
	// expired at now.
	Read(text string, now time.Time) (Token, error)
}
