package ports

// Secrets makes, hashes and derives secrets under the root secret of the
// service. None of them is stored.
type Secrets interface {
	// NewKey and NewSecret make an API key (ak_) and an API secret (sk_).
	NewKey() string
	NewSecret() string
	// Tagged returns random text with a tag, which only the service computes, and IsTagged reports whether it made a
	// text, under any root secret: what a stranger made up is refused without a look into the database.
	Tagged(text string) string
	IsTagged(text string) bool
	// Hash returns the keyed hash of an API key or secret that is stored instead.
	Hash(secret string) []byte
	// Hashes is like Hash under every root secret, the current one first: one of them
	// is stored of a key that was issued before the root was replaced.
	Hashes(secret string) [][]byte
	// Same compares a secret with a hash of any root in constant time.
	Same(secret string, hash []byte) bool
	// ProxyPassword derives the password of a session after it was replaced that often.
	ProxyPassword(sessionID string, number int) string
	// WebhookSecret derives the whsec_ secret of an agent's webhook.
	WebhookSecret(agentID string, version int64) string
	// WebhookSecrets is like WebhookSecret under every root secret, the current one
	// first.
	WebhookSecrets(agentID string, version int64) []string
	// Seal encrypts what is kept in the database. What it is for is part of the
	// seal: opened for anything else, it is an error.
	Seal(plain []byte, purpose string) []byte
	// Open decrypts what Seal made, under the current root secret or an older one
	// that is configured.
	Open(sealed []byte, purpose string) ([]byte, error)
}
