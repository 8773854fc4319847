package app

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

// notification is an event for an agent's webhook.
type notification struct {
	agentID string
	of      webhook.Type
	data    map[string]string
	// once, if set, names a kind of event that is sent only if mark differs from
	// the last one of that kind, such as the day of what is sent once a day.
	once string
	mark int64
}

// notify stores an event in the transaction of its change, with the delivery and
// the job that send it, and returns its id. It does nothing but one query for an
// agent without a webhook. While the webhook is off, the delivery is failed at
// once: the agent finds it in the list and can have it redelivered.
func notify(ctx context.Context, tx ports.Tx, ids ports.IDs, now time.Time, n notification) (string, error) {
	to, err := tx.Webhooks().PeekEndpoint(ctx, n.agentID)
	if err != nil || to.State() == webhook.None {
		return "", err
	}
	if n.once != "" {
		if changed, err := tx.Webhooks().MarkNotified(ctx, n.agentID, n.once, n.mark); err != nil || !changed {
			return "", err
		}
	}
	e := webhook.Event{ID: ids.New(webhook.IDPrefix), AgentID: n.agentID, Type: n.of, At: now, Data: n.data}
	if err := tx.Outbox().Append(ctx, e); err != nil {
		return "", err
	}
	d := webhook.NewDelivery(ids.New(webhook.DeliveryPrefix), e, now).Abandon(to)
	if err := tx.Webhooks().InsertDelivery(ctx, d); err != nil {
		return "", err
	}
	return e.ID, schedule(ctx, tx, d, now)
}

// schedule stores the job of a delivery's next attempt, if there is one.
func schedule(ctx context.Context, tx ports.Tx, d webhook.Delivery, now time.Time) error {
	if d.Status != webhook.Pending {
		return nil
	}
	return tx.Jobs().Insert(ctx, ports.Job{Kind: ports.DeliverJob, DeliveryID: d.ID, At: d.NextAttemptAt}, now)
}

// notifySession notifies of a change of a session: its id and its status, and more
// fields as pairs of name and value.
func notifySession(ctx context.Context, tx ports.Tx, ids ports.IDs, now time.Time, of webhook.Type, s session.Session, more ...string) error {
	data := map[string]string{"session_id": s.ID, "status": string(s.Status)}
	if s.Reason != "" {
		data["status_reason"] = string(s.Reason)
	}
	for i := 0; i+1 < len(more); i += 2 {
		data[more[i]] = more[i+1]
	}
	_, err := notify(ctx, tx, ids, now, notification{agentID: s.AgentID, of: of, data: data})
	return err
}

// notifyHealth notifies of a risk level that has changed for good, and records it
// in the state as announced. The caller stores the state.
func notifyHealth(ctx context.Context, tx ports.Tx, ids ports.IDs, now time.Time, agentID, sessionID string, s *health.State) error {
	from, to, changed := s.Announce(now)
	if !changed {
		return nil
	}
	_, err := notify(ctx, tx, ids, now, notification{agentID: agentID, of: webhook.SessionHealthChanged, data: map[string]string{
		"session_id": sessionID, "risk_level": string(to), "previous_risk_level": string(from)}})
	return err
}

// notifyBalance notifies, at most once a UTC day, of an entry that brought the
// balance below billing.LowBalance.
func notifyBalance(ctx context.Context, tx ports.Tx, ids ports.IDs, now time.Time, booked billing.Entry) error {
	if !booked.CrossesLow() {
		return nil
	}
	_, err := notify(ctx, tx, ids, now, notification{agentID: booked.AgentID, of: webhook.BalanceLow,
		data: map[string]string{"agent_id": booked.AgentID, "threshold": billing.LowBalance.String()},
		once: string(webhook.BalanceLow), mark: billing.Day(now).Unix()})
	return err
}

// notifyBudget notifies of a threshold of the budget that is crossed, each at most
// once a UTC day.
func notifyBudget(ctx context.Context, tx ports.Tx, ids ports.IDs, now time.Time, before billing.Wallet, c billing.ReachedThreshold) error {
	percent := strconv.Itoa(c.Percent)
	_, err := notify(ctx, tx, ids, now, notification{agentID: before.AgentID, of: webhook.BudgetThreshold,
		data: map[string]string{"agent_id": before.AgentID, "limit": c.Limit, "threshold": percent},
		once: string(webhook.BudgetThreshold) + "." + c.Limit + "." + percent, mark: billing.Day(now).Unix()})
	return err
}

// note adds an event of the service to a session's feed.
func note(ctx context.Context, tx ports.Tx, ids ports.IDs, sessionID, what, code string, now time.Time) error {
	return tx.Events().Append(ctx, sessionID, []eventlog.Event{{ID: ids.New(eventlog.IDPrefix), At: now,
		Source: eventlog.Service, Type: what, Code: code, LatencyMS: -1}})
}
