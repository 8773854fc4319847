// Package webhook holds the events that are sent to agents, the schedule of
// their deliveries, and the rule that disables an endpoint that only fails.
package webhook

import (
	"slices"
	"strings"
	"time"

	"agentproxy/domain/account"
)

// Type is the type of an event.
type Type string

// The types of events.
const (
	SessionActive        Type = "session.active"
	SessionFailed        Type = "session.failed"
	SessionRotated       Type = "session.rotated"
	SessionTrafficLow    Type = "session.traffic_low" // at 80 and at 95 percent
	SessionToppedUp      Type = "session.topped_up"
	SessionTopUpFailed   Type = "session.top_up_failed"
	SessionExpiring      Type = "session.expiring" // 24 hours before
	SessionExpired       Type = "session.expired"
	SessionTerminated    Type = "session.terminated"
	SessionHealthChanged Type = "session.health_changed"
	SessionExitDiffers   Type = "session.exit_place_differs" // once an exit

	RechargeConfirming Type = "recharge.confirming"
	RechargePaid       Type = "recharge.paid"
	RechargeExpired    Type = "recharge.expired"
	RechargeFailed     Type = "recharge.failed"

	BudgetThreshold      Type = "budget.threshold"
	BalanceLow           Type = "balance.low"
	TrialExpiring        Type = "trial.expiring"
	AccountSecretRotated Type = "account.secret_rotated"
	Test                 Type = "webhook.test" // requested by the agent
)

// Types lists every type.
var Types = []Type{
	SessionActive, SessionFailed, SessionRotated, SessionTrafficLow, SessionToppedUp, SessionTopUpFailed, SessionExpiring,
	SessionExpired, SessionTerminated,
	SessionHealthChanged, SessionExitDiffers,
	RechargeConfirming, RechargePaid, RechargeExpired, RechargeFailed, BudgetThreshold, BalanceLow,
	TrialExpiring, AccountSecretRotated, Test,
}

// Known reports whether the type is one of Types.
func (t Type) Known() bool { return slices.Contains(Types, t) }

// ScopeOf returns the permission that reads events of a type.
func ScopeOf(t Type) account.Scope {
	family, _, _ := strings.Cut(string(t), ".")
	switch family {
	case "session":
		return account.SessionsRead
	case "recharge", "balance", "budget", "trial":
		return account.BillingRead
	}
	return account.AccountRead
}

// Keep is how long an event is kept: the last retry of a delivery is long over.
const Keep = 30 * 24 * time.Hour

// IDPrefix begins the id of every event.
const IDPrefix = "evt_"

// Event is an event to be delivered. Data holds ids and the new status, never a
// credential or a balance.
type Event struct {
	ID      string
	AgentID string
	Type    Type
	At      time.Time
	Data    map[string]string
	// Unsent is set for an event that no webhook is sent: it is in the feed alone, and not found by its id.
	Unsent bool
}
