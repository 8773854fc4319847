package account

import (
	"time"

	"agentproxy/domain"
)

// SecretHold is how long a secret that was issued without the former one replaces no key. Who has a leaked
// key alone could else issue a secret, and with it take the account from its owner.
const SecretHold = 72 * time.Hour

// ErrSecretTooNew is returned with details.until.
var ErrSecretTooNew = &domain.Error{Kind: domain.Forbidden, Code: "SECRET_TOO_NEW",
	Message: "this api_secret was issued without the former one; replace the key with the former one, or wait until " +
		"the time in details.until"}

// SecretProof is what a caller proves about the API secret.
type SecretProof int

// The proofs.
const (
	NoSecret      SecretProof = iota // none was sent
	CurrentSecret                    // the current one
	FormerSecret                     // the one before a secret that is held
)

// SecretIsHeld reports whether the current secret replaces no key yet.
func (a Agent) SecretIsHeld(now time.Time) bool { return now.Before(a.SecretHeldUntil) }

// ProveSecret returns what a text proves, by same, which compares it with a hash. It returns ErrInvalidKey for
// a wrong one.
func (a Agent) ProveSecret(same func(hash []byte) bool, now time.Time) (SecretProof, error) {
	switch {
	case a.SecretIsHeld(now) && len(a.FormerSecretHash) > 0 && same(a.FormerSecretHash):
		return FormerSecret, nil
	case same(a.SecretHash):
		return CurrentSecret, nil
	}
	return NoSecret, ErrInvalidKey.Msgf("the api_secret is wrong; rotate it to get another one")
}

// ReplaceSecret returns the account with another secret, which ends every token. One that is issued without a
// proof is held, and the former one proves the owner meanwhile; a held one, which proves no owner, does not end
// the hold.
func (a Agent) ReplaceSecret(hash []byte, proof SecretProof, now time.Time) Agent {
	switch {
	case proof == FormerSecret, proof == CurrentSecret && !a.SecretIsHeld(now):
		a.FormerSecretHash, a.SecretHeldUntil = nil, time.Time{}
	case proof == NoSecret:
		if !a.SecretIsHeld(now) {
			a.FormerSecretHash = a.SecretHash
		}
		a.SecretHeldUntil = now.Add(SecretHold)
	}
	a.SecretHash = hash
	a.TokenVersion++
	return a
}

// MayReplaceKey returns ErrSecretTooNew if a proof replaces no key yet.
func (a Agent) MayReplaceKey(proof SecretProof, now time.Time) error {
	if proof == CurrentSecret && a.SecretIsHeld(now) {
		return ErrSecretTooNew.With("until", a.SecretHeldUntil.UTC().Format(time.RFC3339))
	}
	return nil
}
