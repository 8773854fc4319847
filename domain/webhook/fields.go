package webhook

import "fmt"

// Field is a member of the data of events of a type.
type Field struct {
	Name, Doc string
	Optional  bool
}

var (
	ofSession = []Field{{Name: "session_id", Doc: "The session."}, {Name: "status", Doc: "Its status."},
		{Name: "status_reason", Doc: "Why it ended or failed.", Optional: true}}
	ofCost = []Field{{Name: "charged", Doc: "US dollars that were charged.", Optional: true},
		{Name: "held", Doc: "US dollars that are held.", Optional: true},
		{Name: "refunded", Doc: "US dollars that came back.", Optional: true}}
	ofWorker   = Field{Name: "worker", Doc: "Left out: the session's own exit.", Optional: true}
	ofRecharge = []Field{{Name: "order_id", Doc: "The recharge."}, {Name: "status", Doc: "Its status."}}
	ofAccount  = Field{Name: "agent_id", Doc: "The account."}
	ofEnd      = Field{Name: "expires_at", Doc: "RFC 3339."}
)

func with(list []Field, more ...Field) []Field { return append(list[:len(list):len(list)], more...) }

// Fields are the data of events, by type: all that they may have.
var Fields = map[Type][]Field{
	SessionActive:     ofSession,
	SessionFailed:     with(ofSession, ofCost...),
	SessionRotated:    with(ofSession, Field{Name: "reason", Doc: "Of the rotation."}, ofWorker),
	SessionTrafficLow: with(ofSession, Field{Name: "percent", Doc: "Of its traffic that is used: 80 or 95."}),
	SessionToppedUp: with(ofSession, Field{Name: "by", Doc: "agent, or auto_top_up."},
		Field{Name: "added_gb", Doc: "Traffic that was added."}, Field{Name: "cost", Doc: "US dollars."}),
	SessionTopUpFailed: with(ofSession, Field{Name: "code", Doc: "Why auto_top_up bought nothing."}),
	SessionExpiring:    with(ofSession, ofEnd),
	SessionExpired:     with(ofSession, ofCost...),
	SessionTerminated:  with(ofSession, ofCost...),
	SessionHealthChanged: {ofSession[0], {Name: "risk_level", Doc: "From now on."},
		{Name: "previous_risk_level", Doc: "Before."}, ofWorker},
	SessionExitDiffers: {ofSession[0], {Name: "exit_ip", Doc: "As measured."}, {Name: "country", Doc: "As measured."},
		{Name: "declared_country", Doc: "As sold.", Optional: true}, ofWorker},
	RechargeConfirming: ofRecharge, RechargePaid: ofRecharge, RechargeExpired: ofRecharge, RechargeFailed: ofRecharge,
	BudgetThreshold: {ofAccount, {Name: "limit", Doc: "daily or total."},
		{Name: "threshold", Doc: "Percent of it that is spent."}},
	BalanceLow:    {ofAccount, {Name: "threshold", Doc: "US dollars."}},
	TrialExpiring: {ofAccount, ofEnd}, AccountSecretRotated: {ofAccount}, Test: {ofAccount},
}

// CheckData returns an error if data lacks a field that its type always has, or has one that its type never has.
func CheckData(t Type, data map[string]string) error {
	known := map[string]bool{}
	for _, f := range Fields[t] {
		known[f.Name] = true
		if _, has := data[f.Name]; !has && !f.Optional {
			return fmt.Errorf("the data of %s has no %s: %v", t, f.Name, data)
		}
	}
	for name := range data {
		if !known[name] {
			return fmt.Errorf("the data of %s has %s, which is not declared", t, name)
		}
	}
	return nil
}
