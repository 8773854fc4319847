package system

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"agentproxy/domain/account"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// The labels of the keys that are derived from the root. A key serves one
// purpose, so a text that is valid for one is invalid for another. A
// changed label invalidates everything made with its key.
const (
	labelHash    = "agentproxy/api-hash/v1"
	labelProxy   = "agentproxy/proxy-password/v1"
	labelWebhook = "agentproxy/webhook-secret/v1"
	labelToken   = "agentproxy/token-signing/v1"
	labelChain   = "agentproxy/development-chain/v1"
	labelSeal    = "agentproxy/seal/v1"
	labelTag     = "agentproxy/tag/v1"
	labelAdmin   = "agentproxy/admin-token/v1"
	labelCheck   = "agentproxy/root-check/v1"
	labelTicket  = "agentproxy/tls-tickets/v1"
)

// Prefixes of the secrets of agents, and the number of letters and digits after the
// first two: 43 of 62 carry 256 bits.
const (
	secretPrefix  = "sk_"
	webhookPrefix = "whsec_"
	keyLength     = 43
)

// Secrets derives keys from the root secrets (HKDF-SHA-256, RFC 5869): the
// current one makes, all of them verify and open. It hides itself when printed.
type Secrets struct {
	keys
	all []keys // the current ones first
}

// keys are derived from one root.
type keys struct {
	hash, proxy, webhook, token, chain, check, tag, admin, ticket []byte
	seal                                                          cipher.AEAD
	hashes, passwords                                             *macs // by hash and proxy, for every call
}

// macs keeps some HMAC-SHA-256 of one key. One that is used again takes half of the work of a new one.
type macs struct{ pool sync.Pool }

func macsOf(key []byte) *macs {
	return &macs{sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

func (m *macs) take() hash.Hash { return m.pool.Get().(hash.Hash) }

func (m *macs) put(mac hash.Hash) {
	mac.Reset()
	m.pool.Put(mac)
}

func (m *macs) sum(text string) []byte {
	mac := m.take()
	defer m.put(mac)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

var _ ports.Secrets = (*Secrets)(nil)

// NewSecrets derives the keys of a root and of those that it replaced, at most
// 8. It returns an error if ParseRoot does for one of them.
func NewSecrets(root Root, previous ...Root) (*Secrets, error) {
	if len(previous) > maxPrevious {
		return nil, fmt.Errorf("%d previous root secrets are given, at most %d are used", len(previous), maxPrevious)
	}
	s := new(Secrets)
	for _, r := range append([]Root{root}, previous...) {
		k, err := deriveKeys(r)
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, k)
	}
	s.keys = s.all[0]
	return s, nil
}

func deriveKeys(root Root) (k keys, err error) {
	if root, err = ParseRoot(string(root)); err != nil {
		return k, err
	}
	var seal []byte
	for label, key := range map[string]*[]byte{
		labelHash: &k.hash, labelProxy: &k.proxy, labelWebhook: &k.webhook, labelToken: &k.token,
		labelChain: &k.chain, labelCheck: &k.check, labelTag: &k.tag, labelAdmin: &k.admin, labelSeal: &seal,
		labelTicket: &k.ticket,
	} {
		if *key, err = hkdf.Key(sha256.New, root, nil, label, sha256.Size); err != nil {
			return k, fmt.Errorf("derive %s: %w", label, err)
		}
	}
	k.hashes, k.passwords = macsOf(k.hash), macsOf(k.proxy)
	block, err := aes.NewCipher(seal)
	if err == nil {
		k.seal, err = cipher.NewGCMWithRandomNonce(block)
	}
	if err != nil {
		return k, fmt.Errorf("seal: %w", err)
	}
	return k, nil
}

// Checks returns a value of each root, the current one first, by which a database
// recognizes the roots that it was used with. Nothing else follows from it.
func (s *Secrets) Checks() [][]byte {
	return each(s.all, func(k keys) []byte { return slices.Clone(k.check) })
}

func each[T any](all []keys, of func(keys) T) []T {
	list := make([]T, len(all))
	for i, k := range all {
		list[i] = of(k)
	}
	return list
}

// LogValue hides the keys from logs.
func (*Secrets) LogValue() slog.Value { return slog.StringValue(hidden) }

// String hides the keys from text.
func (*Secrets) String() string { return hidden }

// GoString hides the keys from %#v.
func (*Secrets) GoString() string { return hidden }

// NewKey generates an API key: ak_, 43 letters and digits, and a tag of them.
func (s *Secrets) NewKey() string {
	return s.Tagged(account.APIKeyPrefix + randomText(account.KeyRandom))
}

// tagLength is the length of a tag: 32 bits, so that one of four billion texts that are made up has it.
const tagLength = 8

// Tagged returns a text followed by its tag: the first bytes of an HMAC-SHA-256 as hexadecimal digits.
func (s *Secrets) Tagged(text string) string { return text + tagOf(s.keys, text) }

// IsTagged reports whether Tagged returned a text under one of the roots.
func (s *Secrets) IsTagged(text string) bool {
	n := len(text) - tagLength
	return n > 0 && slices.ContainsFunc(s.all, func(k keys) bool {
		return hmac.Equal([]byte(tagOf(k, text[:n])), []byte(text[n:]))
	})
}

func tagOf(k keys, text string) string { return hex.EncodeToString(sum(k.tag, text)[:tagLength/2]) }

// NewSecret generates an API secret: sk_ and 43 letters and digits.
func (*Secrets) NewSecret() string { return secretPrefix + randomText(keyLength) }

// Hash returns the keyed hash (HMAC-SHA-256, 32 bytes) that is stored instead of an
// API key or secret. A fast hash is enough for 256 random bits.
func (s *Secrets) Hash(secret string) []byte { return s.hashes.sum(secret) }

// Hashes returns the hash of a key or secret under each root, the current one
// first.
func (s *Secrets) Hashes(secret string) [][]byte {
	return each(s.all, func(k keys) []byte { return k.hashes.sum(secret) })
}

// Same reports whether a secret has the hash under one of the roots, in constant
// time.
func (s *Secrets) Same(secret string, hash []byte) bool {
	same := 0
	for _, h := range s.Hashes(secret) {
		same |= subtle.ConstantTimeCompare(h, hash)
	}
	return same == 1
}

// Seal encrypts with AES-256-GCM under a random nonce, which comes first. The
// purpose is authenticated, not stored.
func (s *Secrets) Seal(plain []byte, purpose string) []byte {
	return s.seal.Seal(nil, nil, plain, []byte(purpose))
}

// Open decrypts a text that Seal returned for the same purpose under one of the
// roots.
func (s *Secrets) Open(sealed []byte, purpose string) ([]byte, error) {
	for _, k := range s.all {
		if plain, err := k.seal.Open(nil, nil, sealed, []byte(purpose)); err == nil {
			return plain, nil
		}
	}
	return nil, errors.New("what is sealed cannot be opened: it was sealed under another AGENTPROXY_SECRET, " +
		"or was changed")
}

// ProxyPassword derives the password of a session after it was replaced that often: 32 of a-z and
// 2-7, and the number.
func (s *Secrets) ProxyPassword(sessionID string, number int) string {
	mac := s.passwords.take()
	defer s.passwords.put(mac)
	return traffic.PasswordBy(mac, sessionID, number)
}

// ProxyKey returns the key of ProxyPassword, for the gateway, which checks passwords
// by itself (traffic.CheckPassword).
func (s *Secrets) ProxyKey() []byte { return slices.Clone(s.proxy) }

// OlderProxyKeys returns the keys of the passwords that previous roots derived.
func (s *Secrets) OlderProxyKeys() [][]byte {
	return each(s.all[1:], func(k keys) []byte { return slices.Clone(k.proxy) })
}

// TicketSecret returns what the keys of TLS session tickets are derived from. Replicas with the same root resume each
// other's sessions.
func (s *Secrets) TicketSecret() []byte { return slices.Clone(s.ticket) }

// DevchainSeed returns the seed of the addresses of the development chain, which
// differs between installations.
func (s *Secrets) DevchainSeed() []byte { return slices.Clone(s.chain) }

// WebhookSecret derives the secret of an agent's webhook: whsec_ and the base64
// of 32 bytes, as in the Standard Webhooks specification.
func (s *Secrets) WebhookSecret(agentID string, version int64) string {
	return s.WebhookSecrets(agentID, version)[0]
}

// WebhookSecrets returns WebhookSecret of each root, the current one first.
func (s *Secrets) WebhookSecrets(agentID string, version int64) []string {
	return each(s.all, func(k keys) string {
		// No id has a slash, so no two pairs make one text.
		key := sum(k.webhook, agentID+"/"+strconv.FormatInt(version, 10))
		return webhookPrefix + base64.StdEncoding.EncodeToString(key)
	})
}

// AdminToken derives the token of the admin listener, 43 characters, the same on every replica.
func (s *Secrets) AdminToken() string { return base64.RawURLEncoding.EncodeToString(s.admin) }

func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// randomText returns n letters and digits of equal probability: a byte of 248 or
// more is discarded, because 256 is not a multiple of 62.
func randomText(n int) string {
	const fair = 256 / len(alphabet) * len(alphabet)
	text := make([]byte, 0, n)
	var block [64]byte
	for len(text) < n {
		rand.Read(block[:])
		for _, b := range block {
			if int(b) < fair && len(text) < n {
				text = append(text, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(text)
}
