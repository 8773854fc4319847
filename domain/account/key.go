package account

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"agentproxy/domain"
)

// Refusals about keys.
var (
	// ErrKeyNotFound is returned for an unknown key and for another agent's.
	ErrKeyNotFound = &domain.Error{Kind: domain.NotFound, Code: "NOT_FOUND",
		Message: "no key has this id; list your keys to find it"}
	ErrTooManyKeys = domain.ErrInvalid.Msgf("an account has at most %d keys; delete one that is not needed any more",
		MaxKeys)
	ErrFirstKey = domain.ErrInvalid.Msgf("the first key is not deleted; rotate it instead")
)

// Bounds of the keys of an account.
const (
	MaxKeys  = 20 // the first one included
	MaxGrace = 24 * time.Hour
)

// KeyPrefix begins the id of every key.
const KeyPrefix = "key_"

// APIKeyPrefix begins every API key.
const APIKeyPrefix = "ak_"

// The form of an API key of an early version behind its prefix; the first ones had no checksum. Later ones have a
// tag in its place, which only the service computes (ports.Secrets).
const (
	KeyRandom = 43 // letters and digits, about 256 bits
	keySum    = 8  // hexadecimal digits
)

// EarlyAPIKey returns the API key of KeyRandom random letters and digits as early versions issued it: they, behind
// APIKeyPrefix and in front of their checksum.
func EarlyAPIKey(random string) string { return APIKeyPrefix + random + sumOf(random) }

// sumOf returns the checksum of a key.
func sumOf(random string) string {
	return fmt.Sprintf("%0*x", keySum, crc32.ChecksumIEEE([]byte(random)))
}

// MayBeEarlyKey reports whether a text has the form of an API key of an early version. One that was mistyped or made
// up has not, and is refused without a look into the database; who computes checksums is limited by
// address.
func MayBeEarlyKey(text string) bool {
	random, ok := strings.CutPrefix(text, APIKeyPrefix)
	if !ok || len(random) != KeyRandom+keySum {
		return ok && len(random) == KeyRandom
	}
	return random[KeyRandom:] == sumOf(random[:KeyRandom])
}

// hintLength is how many characters of a key are shown.
const hintLength = 4

// Hint returns the last characters of a key, which distinguish it from others of an account.
func Hint(key string) string { return key[max(0, len(key)-hintLength):] }

// Key is an API key of an account. Only its hash is stored.
type Key struct {
	ID       string
	AgentID  string
	Name     string
	Hash     []byte
	Parent   string  // id of the key that issued it, with which it ends; empty: none that is known
	Hint     string  // the last characters of the key; empty for a first key of an early version
	Scopes   []Scope // in the order of Scopes; nil: all
	First    bool    // it was issued by the registration, or in place of that one
	Replaced bool    // it was the first one, and ends soon
	Created  time.Time
	Expires  time.Time // zero: never
	Used     time.Time // rounded up to the next minute; zero: not yet, or long ago
	Limits   Limits
}

// FirstKeyName is the name of the first key of every account.
const FirstKeyName = "first"

// FirstKeyID returns the id of the first key of an account, which it keeps when it is replaced. It has a digit more
// than those of other keys.
func FirstKeyID(agentID string) string { return KeyPrefix + "1" + strings.TrimPrefix(agentID, "agt_") }

// FirstKey returns the first key of the account.
func (a Agent) FirstKey() Key {
	created := a.KeyCreatedAt
	if created.IsZero() {
		created = a.CreatedAt
	}
	return Key{ID: FirstKeyID(a.ID), AgentID: a.ID, Name: FirstKeyName, Hash: a.KeyHash,
		Hint: a.KeyHint, First: true, Created: created, Used: a.KeyUsedAt}
}

// Replace returns the account with another first key, and the key that the former one is until the
// end of the grace.
func (a Agent) Replace(hash []byte, hint, oldID string, grace time.Duration, now time.Time) (Agent, Key) {
	old := a.FirstKey()
	old.ID, old.Name, old.First, old.Replaced, old.Expires = oldID, "first, replaced", false, true, now.Add(grace)
	a.KeyHash, a.KeyHint, a.KeyCreatedAt, a.KeyUsedAt = hash, hint, now, time.Time{}
	return a, old
}

// Descendants returns the ids of the keys that a key issued, and those issued in turn.
func Descendants(keys []Key, id string) (ids []string) {
	for _, k := range keys {
		if k.Parent == id && k.ID != id {
			ids = append(append(ids, k.ID), Descendants(keys, k.ID)...)
		}
	}
	return ids
}

// EndsNoLaterThan returns the key with an end that is not after another, if that is set.
func (k Key) EndsNoLaterThan(end time.Time) Key {
	if !end.IsZero() && (k.Expires.IsZero() || k.Expires.After(end)) {
		k.Expires = end
	}
	return k
}

// Expired reports whether the key is of no use any more.
func (k Key) Expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// Grants returns the permissions of the key.
func (k Key) Grants() []Scope {
	if k.Scopes == nil {
		return Scopes
	}
	return k.Scopes
}

// CheckKey validates what an agent asks of a further key, and returns its trimmed name and its
// permissions: the caller's if none are asked for. It returns ErrScope if a permission is not the
// caller's.
func CheckKey(name string, asked, callers []Scope, expires, now time.Time) (string, []Scope, error) {
	var issues []domain.FieldIssue
	if issue := nameIssue(name); issue != "" {
		issues = append(issues, domain.FieldIssue{Field: "name", Issue: issue})
	}
	if !expires.IsZero() && !expires.After(now) {
		issues = append(issues, domain.FieldIssue{Field: "expires_at", Issue: "must be in the future"})
	}
	if issues != nil {
		return "", nil, domain.InvalidFields(issues...)
	}
	scopes, err := Downscope(asked, callers)
	if err != nil {
		return "", nil, err
	}
	if len(scopes) == len(Scopes) {
		scopes = nil
	}
	return strings.TrimSpace(name), scopes, nil
}

// Downscope returns the permissions that are asked for, all of the caller's if none are. It returns
// ErrScope if one is not the caller's.
func Downscope(asked, callers []Scope) ([]Scope, error) {
	if len(asked) == 0 {
		return callers, nil
	}
	scopes, err := CheckScopes(asked)
	if err != nil {
		return nil, err
	}
	return scopes, Covers(callers, scopes)
}

// Covers returns ErrScope if a needed permission is not among those that a caller has.
func Covers(has, needed []Scope) error {
	for _, s := range needed {
		if !slices.Contains(has, s) {
			return ErrScope.With("required", string(s))
		}
	}
	return nil
}
