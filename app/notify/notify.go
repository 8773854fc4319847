// Package notify stores the events of a change, in its transaction: those of an
// agent's feed, with the delivery and the job that send them to its webhook, and those of a
// session's event log.
package notify

import (
	"context"
	"strconv"
	"time"

	"agentproxy/domain/billing"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Notification is an event for an agent.
type Notification struct {
	AgentID string
	Of      webhook.Type
	Data    map[string]string
	// Once, if set, names a kind of event that is sent only if Mark differs from
	// the last one of that kind, such as the day of what is sent once a day.
	Once string
	Mark int64
}

// Repos is the repositories of a notification.
type Repos interface {
	Webhooks() ports.Webhooks
	Outbox() ports.Outbox
	Jobs() ports.Jobs
}

// Enqueue stores an event in the transaction of its change, for the feed of its agent and, where that has a webhook,
// with the delivery and the job that send it, and returns its id. While the webhook is off, the delivery is failed at
// once: the agent finds it in the list and can have it redelivered. So is one beyond webhook.MaxPending.
func Enqueue(ctx context.Context, tx Repos, ids ports.IDs, now time.Time, n Notification) (string, error) {
	if n.Once != "" {
		if changed, err := tx.Webhooks().MarkNotified(ctx, n.AgentID, n.Once, n.Mark); err != nil || !changed {
			return "", err
		}
	}
	to, err := tx.Webhooks().PeekEndpoint(ctx, n.AgentID)
	if err != nil {
		return "", err
	}
	e := webhook.Event{ID: ids.New(webhook.IDPrefix), AgentID: n.AgentID, Type: n.Of, At: now, Data: n.Data,
		Unsent: to.State() == webhook.None}
	if err := tx.Outbox().Append(ctx, e); err != nil || e.Unsent {
		return e.ID, err
	}
	d := webhook.NewDelivery(ids.New(webhook.DeliveryPrefix), e, now).Abandon(to)
	if pending, err := tx.Webhooks().Pending(ctx, n.AgentID, webhook.MaxPending); err != nil {
		return "", err
	} else if pending >= webhook.MaxPending {
		d = d.Refuse()
	}
	if err := tx.Webhooks().InsertDelivery(ctx, d); err != nil {
		return "", err
	}
	return e.ID, Schedule(ctx, tx, d, now)
}

// Schedule stores the job of a delivery's next attempt, if there is one.
func Schedule(ctx context.Context, tx interface{ Jobs() ports.Jobs }, d webhook.Delivery, now time.Time) error {
	if d.Status != webhook.Pending {
		return nil
	}
	return tx.Jobs().Insert(ctx, ports.Job{Kind: ports.DeliverJob, DeliveryID: d.ID, At: d.NextAttemptAt}, now)
}

// SessionChanged notifies of a change of a session: its id and its status, and more
// fields as pairs of name and value.
func SessionChanged(
	ctx context.Context, tx Repos, ids ports.IDs, now time.Time, of webhook.Type, s session.Session, more ...string,
) error {
	data := map[string]string{"session_id": s.ID, "status": string(s.Status)}
	if s.Reason != "" {
		data["status_reason"] = string(s.Reason)
	}
	for i := 0; i+1 < len(more); i += 2 {
		data[more[i]] = more[i+1]
	}
	_, err := Enqueue(ctx, tx, ids, now, Notification{AgentID: s.AgentID, Of: of, Data: data})
	return err
}

// Cost returns what a session was charged, holds and was refunded, for the data of
// SessionChanged.
func Cost(s session.Session) []string {
	return []string{"charged", s.Money.Charged.Total().String(), "held", s.Money.Held.Total().String(),
		"refunded", s.Money.Refunded.Total().String()}
}

// Subject is what has a health: a session, or one of its workers.
type Subject struct {
	AgentID, SessionID string
	Worker             string // empty: the session itself
}

// HealthChanged notifies of a risk level that has changed for good, and records it
// in the state as announced. The caller stores the state.
func HealthChanged(
	ctx context.Context, tx Repos, ids ports.IDs, now time.Time, of Subject, s *health.State,
) error {
	from, to, changed := s.Announce(now)
	if !changed {
		return nil
	}
	data := map[string]string{"session_id": of.SessionID, "risk_level": string(to), "previous_risk_level": string(from)}
	if of.Worker != "" {
		data["worker"] = of.Worker
	}
	_, err := Enqueue(ctx, tx, ids, now, Notification{AgentID: of.AgentID, Of: webhook.SessionHealthChanged, Data: data})
	return err
}

// BalanceChanged notifies, at most once a UTC day, of an entry that brought the
// balance below billing.LowBalance.
func BalanceChanged(ctx context.Context, tx Repos, ids ports.IDs, now time.Time, booked billing.Entry) error {
	if !booked.CrossesLow() {
		return nil
	}
	_, err := Enqueue(ctx, tx, ids, now, Notification{AgentID: booked.AgentID, Of: webhook.BalanceLow,
		Data: map[string]string{"agent_id": booked.AgentID, "threshold": billing.LowBalance.String()},
		Once: string(webhook.BalanceLow), Mark: billing.Day(now).Unix()})
	return err
}

// BudgetReached notifies of a threshold of the budget that is crossed, each at most
// once a UTC day.
func BudgetReached(
	ctx context.Context, tx Repos, ids ports.IDs, now time.Time, before billing.Wallet, c billing.ReachedThreshold,
) error {
	percent := strconv.Itoa(c.Percent)
	_, err := Enqueue(ctx, tx, ids, now, Notification{AgentID: before.AgentID, Of: webhook.BudgetThreshold,
		Data: map[string]string{"agent_id": before.AgentID, "limit": c.Limit, "threshold": percent},
		Once: string(webhook.BudgetThreshold) + "." + c.Limit + "." + percent, Mark: billing.Day(now).Unix()})
	return err
}

// LogEvent adds an event of the service to a session's event log.
func LogEvent(ctx context.Context, tx interface{ Events() ports.Events }, ids ports.IDs, sessionID, what, code string,
	now time.Time) error {
	return tx.Events().Append(ctx, sessionID, []eventlog.Event{{ID: ids.New(eventlog.IDPrefix), At: now,
		Source: eventlog.Service, Type: what, Code: code, LatencyMS: -1}})
}
