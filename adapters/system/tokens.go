package system

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"agentproxy/domain/account"
	"agentproxy/ports"
)

const (
	tokenIssuer   = "agentproxy"
	tokenAudience = "agentproxy-api"
	tokenPrefix   = "tok_" // of jti
	maxToken      = 4096   // characters; ours have about 500
	// clockSkew is the most that the clock of the replica that signed may be ahead of
	// this one's. It does not lengthen the life of a token.
	clockSkew = 30 * time.Second
)

// tokenHeader is the header of every token. Read compares it byte by byte, so no
// alg, kid, jku or crit of an attacker is parsed.
var tokenHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "."

// claims are the claims of a token. Scope is a list with spaces, as in RFC 8693.
type claims struct {
	jwt.RegisteredClaims
	Version int64 `json:"tv"`
	// Key is the beginning of the hash of the API key. Tokens of early versions have none.
	Key []byte `json:"key,omitempty"`
	// Since is when the agent authenticated with its secret, as in OpenID Connect. Tokens of early versions
	// have none: they are as old as their iat.
	Since *jwt.NumericDate `json:"auth_time,omitempty"`
	Scope string           `json:"scope"`
}

// Tokens signs and reads Bearer tokens: JWTs (RFC 7519) under HMAC-SHA-256. It
// hides itself when printed.
type Tokens struct {
	keys  [][]byte // the first signs
	ids   ports.IDs
	rules []jwt.ParserOption
}

var _ ports.Tokens = (*Tokens)(nil)

// NewTokens returns Tokens that sign with the token key of the secrets, accept
// those of previous roots too, and generate each token's jti with ids.
func NewTokens(s *Secrets, ids ports.IDs) *Tokens {
	return &Tokens{keys: each(s.all, func(k keys) []byte { return k.token }), ids: ids, rules: []jwt.ParserOption{
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithStrictDecoding(),
		jwt.WithIssuer(tokenIssuer),
		jwt.WithAudience(tokenAudience),
		jwt.WithExpirationRequired(),
	}}
}

// LogValue hides the key from logs.
func (*Tokens) LogValue() slog.Value { return slog.StringValue(hidden) }

// String hides the key from text.
func (*Tokens) String() string { return hidden }

// GoString hides the key from %#v.
func (*Tokens) GoString() string { return hidden }

// Sign returns the signed text. The expiry is rounded up to whole seconds, so that
// no token expires early.
func (t *Tokens) Sign(tok ports.Token, now time.Time) (string, error) {
	words := make([]string, len(tok.Scopes))
	for i, s := range tok.Scopes {
		words[i] = string(s)
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    tokenIssuer,
			Audience:  jwt.ClaimStrings{tokenAudience},
			Subject:   tok.AgentID,
			ID:        t.ids.New(tokenPrefix),
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(tok.Expires.Add(time.Second - 1)),
		},
		Version: tok.Version,
		Key:     tok.Key,
		Since:   jwt.NewNumericDate(tok.Since),
		Scope:   strings.Join(words, " "),
	}).SignedString(t.keys[0])
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return text, nil
}

// Read returns account.ErrExpiredToken if Sign did not return the text with one of
// the keys, or if it has expired at now.
func (t *Tokens) Read(text string, now time.Time) (ports.Token, error) {
	// The base64 decoder skips line ends, strict or not; a header field has none.
	if len(text) > maxToken || !strings.HasPrefix(text, tokenHeader) || strings.ContainsAny(text, "\r\n") {
		return ports.Token{}, account.ErrExpiredToken
	}
	var c claims
	clock := jwt.WithTimeFunc(func() time.Time { return now })
	parser := jwt.NewParser(append(t.rules[:len(t.rules):len(t.rules)], clock)...)
	keys := jwt.VerificationKeySet{}
	for _, key := range t.keys {
		keys.Keys = append(keys.Keys, key)
	}
	_, err := parser.ParseWithClaims(text, &c, func(*jwt.Token) (any, error) { return keys, nil })
	if err != nil || !c.complete(now) {
		return ports.Token{}, account.ErrExpiredToken
	}
	var scopes []account.Scope
	for word := range strings.FieldsSeq(c.Scope) {
		scopes = append(scopes, account.Scope(word))
	}
	since := c.IssuedAt
	if c.Since != nil {
		since = c.Since
	}
	return ports.Token{AgentID: c.Subject, Since: since.UTC(), Version: c.Version, Key: c.Key, Scopes: scopes,
		Expires: c.ExpiresAt.UTC()}, nil
}

// complete reports whether the claims are present that Sign always writes and the
// library treats as optional.
func (c claims) complete(now time.Time) bool {
	return c.Subject != "" && c.ID != "" && c.IssuedAt != nil && !c.IssuedAt.After(now.Add(clockSkew))
}
