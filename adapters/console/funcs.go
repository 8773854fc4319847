package console

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

// tones are the classes of tags, by their text.
var tones = map[string]string{
	string(session.Active): "good", string(session.Creating): "warn", string(session.Failed): "bad",
	string(session.Terminated): "off", string(session.Expired): "off",
	string(health.Low): "good", string(health.Medium): "warn", string(health.High): "bad", string(health.Critical): "bad",
	"pending": "warn", "confirming": "warn", "paid": "good", "delivered": "good", "enabled": "good", "disabled": "bad",
	string(worker.ExitLost): "bad", string(worker.Exhausted): "off",
	string(account.KeyFree): "good", string(account.KeyRestricted): "warn", string(account.KeyReplaced): "off",
	"none": "off", "off": "off", "report": "warn", "enforce": "good",
}

// reasons are why sessions ended, in words.
var reasons = map[session.Reason]string{
	session.AgentRequest: "ended by you", session.TrafficExhausted: "the traffic is used up",
	session.TimeExpired: "its time is over", session.ProviderFailed: "the provider could not deliver",
	session.ProviderLost: "the provider lost it", session.AccountDisabled: "the account was disabled",
}

// advised holds the texts of the recommendations.
var advised = map[health.Recommendation]string{
	health.OK: "use it as it is", health.ConsiderRotate: "consider rotating it", health.RotateNow: "rotate it now",
	health.Pause: "pause it",
}

// funcs are the functions of the pages besides those of the layout.
var funcs = template.FuncMap{
	"base":       func() string { return Base },
	"tone":       func(s any) string { return tones[fmt.Sprint(s)] },
	"reason":     func(r session.Reason) string { return reasons[r] },
	"over":       func(s session.Status) bool { return s.Over() },
	"positive":   func(n int) bool { return n > 0 },
	"positive64": func(n int64) bool { return n > 0 },
	"sentence":   sentence,
	"short":      short,
	"list":       func(items ...string) []string { return items },
	"sum":        func(a, b int64) int64 { return a + b },
	"less":       func(a, b domain.Money) domain.Money { return a - b },
	"inc":        func(n int) int { return n + 1 },
	"usdt":       func(m domain.Money) string { return strings.TrimPrefix(ui.USD(m), "$") + " USDT" },
	"failed":     eventlog.Event.IsFailure,
	"advice":     eventlog.Event.Advice,
	"about":      about,
	"advised":    func(r health.Recommendation) string { return advised[r] },
	"every":      func(d time.Duration) string { return d.String() },
}

// about returns an amount rounded to cents; what is less than one is shown as such.
func about(m domain.Money) string {
	const cent = domain.Dollar / 100
	if m > 0 && m < cent {
		return "less than " + ui.USD(cent)
	}
	return "about " + ui.USD((m+cent/2)/cent*cent)
}

// short returns an id as a list shows it: its prefix and its last characters, which differ.
func short(id string) string {
	const tail = 6
	prefix, rest, found := strings.Cut(id, "_")
	if !found || len(rest) <= tail {
		if len(id) > 2*tail {
			return id[:3] + "…" + id[len(id)-tail:]
		}
		return id
	}
	return prefix + "_…" + rest[len(rest)-tail:]
}
