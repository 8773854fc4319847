// Package account holds agents, their credentials' scopes, and the assignment
// of every new account to a referring agent.
package account

import (
	"slices"
	"time"

	"agentproxy/domain"
)

// Status is whether the account may use the service.
type Status string

// The states of an account.
const (
	Active   Status = "active"
	Disabled Status = "disabled"
)

// Statuses lists every status.
var Statuses = []Status{Active, Disabled}

// Refusals about accounts and credentials.
var (
	ErrInvalidKey = &domain.Error{Kind: domain.Unauthorized, Code: "AUTH_INVALID_KEY",
		Message: "send a valid API key in the header X-API-Key, or a token as Authorization: Bearer"}
	ErrExpiredToken = &domain.Error{Kind: domain.Unauthorized, Code: "AUTH_EXPIRED_TOKEN",
		Message: "the token is expired or invalid; get a new one with your API key and secret"}
	ErrScope = &domain.Error{Kind: domain.Forbidden, Code: "AUTH_INSUFFICIENT_PERMISSION",
		Message: "the token lacks the permission for this call; get one that has it"}
	ErrDisabled = &domain.Error{Kind: domain.Forbidden, Code: "ACCOUNT_DISABLED",
		Message: "this account was disabled by the operator; contact support"}
	ErrReferralCode = &domain.Error{Kind: domain.Invalid, Code: "INVALID_REFERRAL_CODE",
		Message: "the referral code is unknown or disabled; correct it or leave it out"}
	ErrRegistrationClosed = &domain.Error{Kind: domain.Forbidden, Code: "REGISTRATION_CLOSED",
		Message: "the operator opens accounts; ask for one"}
	ErrRateLimited = &domain.Error{Kind: domain.RateLimited, Code: "RATE_LIMIT_EXCEEDED", Retryable: true,
		Message: "too many requests; wait for the seconds in Retry-After"}
	ErrStorageLimit = &domain.Error{Kind: domain.RateLimited, Code: "STORAGE_LIMIT", Retryable: true,
		Message: "the service stores no more for this account today; wait for the seconds in Retry-After, or recharge. " +
			"Reads, payments, renewals and terminations go on"}
	// ErrNotFound is returned to operators only; the API has no route that
	// names an agent.
	ErrNotFound = &domain.Error{Kind: domain.NotFound, Code: "NOT_FOUND", Message: "no such agent"}
)

// Agent is one account. Of its key and secret only keyed hashes are stored.
type Agent struct {
	ID            string
	BillingUserID string // the backend user that the account maps 1:1 to
	Name          string
	ContactEmail  string
	WebhookURL    string
	Description   string
	Status        Status
	DisabledFor   string // the operator's reason
	VerifiedFor   string // the operator's evidence for the tier verified; empty: not verified
	KeyHash       []byte // of the first key
	KeyHint       string
	KeyCreatedAt  time.Time // zero for an account of an early version, whose key is as old as it
	KeyUsedAt     time.Time // zero: not yet, or long ago
	SecretHash    []byte
	// SecretHeldUntil is when a secret that was issued without the former one may replace keys; zero or past:
	// now. FormerSecretHash is of the former one, which proves the owner until then.
	SecretHeldUntil  time.Time
	FormerSecretHash []byte
	// TokenVersion is incremented by every rotation of the secret, which
	// invalidates older tokens.
	TokenVersion int64
	// WebhookVersion is incremented by every rotation of the webhook secret,
	// which is derived from it. It is 0 if no secret was issued.
	WebhookVersion int64
	// PerMinute is the agent's own rate limit. Nil is the service's default and
	// 0 is unlimited.
	PerMinute *int
	Referrer  Referrer
	Origin    Origin // of the registration; empty once it is not kept any more
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Referrer is a referring agent.
type Referrer struct {
	ID       string
	Name     string
	Code     string
	Default  bool // gets the accounts that registered without a code
	Disabled bool
}

// Scope is a permission of a token. An API key holds all of them.
type Scope string

// The scopes.
const (
	AccountRead    Scope = "account:read"
	AccountWrite   Scope = "account:write"
	ProductsRead   Scope = "products:read"
	SessionsRead   Scope = "sessions:read"
	SessionsWrite  Scope = "sessions:write"
	TelemetryWrite Scope = "telemetry:write"
	BillingRead    Scope = "billing:read"
	BillingWrite   Scope = "billing:write"
	StatsRead      Scope = "stats:read"
)

// Scopes lists every scope, in the order of the documentation.
var Scopes = []Scope{AccountRead, AccountWrite, ProductsRead, SessionsRead, SessionsWrite,
	TelemetryWrite, BillingRead, BillingWrite, StatsRead}

// CheckScopes validates the scopes of a token request and returns them without
// repeats, in the documented order. None requests all of them.
func CheckScopes(asked []Scope) ([]Scope, error) {
	if len(asked) == 0 {
		return Scopes, nil
	}
	for _, s := range asked {
		if !slices.Contains(Scopes, s) {
			return nil, domain.InvalidField("permissions", "has an unknown permission")
		}
	}
	var granted []Scope
	for _, s := range Scopes {
		if slices.Contains(asked, s) {
			granted = append(granted, s)
		}
	}
	return granted, nil
}
