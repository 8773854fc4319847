package app

import (
	"context"
	"strconv"
	"time"

	"agentproxy/domain/billing"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// DeliverJob is the kind of the job that tries one delivery.
const DeliverJob = "deliver"

// notice is something that an agent's webhook is told.
type notice struct {
	agentID string
	of      webhook.Type
	data    map[string]string
	// once is set for what is told only when mark is not what it was the last
	// time: a day, for what is told once a day.
	once string
	mark int64
}

// tell stores an event in the unit of its change, with the delivery and the job
// that send it, and returns its id. For an agent without a webhook it is one
// look-up, and nothing is stored. While the webhook is off, the delivery is over
// at once: the agent finds it in the list and can ask for it.
func tell(ctx context.Context, tx ports.Tx, ids ports.IDs, now time.Time, n notice) (string, error) {
	to, err := tx.Webhooks().PeekEndpoint(ctx, n.agentID)
	if err != nil || to.State() == webhook.None {
		return "", err
	}
	if n.once != "" {
		if news, err := tx.Webhooks().MarkNotified(ctx, n.agentID, n.once, n.mark); err != nil || !news {
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

// schedule stores the job of a delivery's next attempt, if there is to be one.
func schedule(ctx context.Context, tx ports.Tx, d webhook.Delivery, now time.Time) error {
	if d.Status != webhook.Pending {
		return nil
	}
	return tx.Jobs().Insert(ctx, ports.Job{Kind: DeliverJob, DeliveryID: d.ID, At: d.NextAttemptAt}, now)
}

// tellSession tells what became of a session: its id and its status, with more
// as pairs of name and value.
func tellSession(ctx context.Context, tx ports.Tx, ids ports.IDs, now time.Time, of webhook.Type, s session.Session, more ...string) error {
	data := map[string]string{"session_id": s.ID, "status": string(s.Status)}
	if s.Reason != "" {
		data["status_reason"] = string(s.Reason)
	}
	for i := 0; i+1 < len(more); i += 2 {
		data[more[i]] = more[i+1]
	}
	_, err := tell(ctx, tx, ids, now, notice{agentID: s.AgentID, of: of, data: data})
	return err
}

// tellHealth tells when a session's risk level has changed for good, and notes
// in the state that it was told. The caller stores the state.
func tellHealth(ctx context.Context, tx ports.Tx, ids ports.IDs, now time.Time, agentID, sessionID string, s *health.State) error {
	from, to, changed := s.Announce(now)
	if !changed {
		return nil
	}
	_, err := tell(ctx, tx, ids, now, notice{agentID: agentID, of: webhook.SessionHealthChanged, data: map[string]string{
		"session_id": sessionID, "risk_level": string(to), "previous_risk_level": string(from)}})
	return err
}

// tellBalance tells once a UTC day that an entry brought the balance below the
// line where one should recharge.
func tellBalance(ctx context.Context, tx ports.Tx, ids ports.IDs, now time.Time, booked billing.Entry) error {
	if !booked.CrossesLow() {
		return nil
	}
	_, err := tell(ctx, tx, ids, now, notice{agentID: booked.AgentID, of: webhook.BalanceLow,
		data: map[string]string{"agent_id": booked.AgentID, "threshold": billing.LowBalance.String()},
		once: string(webhook.BalanceLow), mark: billing.Day(now).Unix()})
	return err
}

// tellBudget tells of every threshold of the budget that spending x more
// reaches, each once a UTC day.
func tellBudget(ctx context.Context, tx ports.Tx, ids ports.IDs, now time.Time, before billing.Wallet, c billing.ReachedThreshold) error {
	percent := strconv.Itoa(c.Percent)
	_, err := tell(ctx, tx, ids, now, notice{agentID: before.AgentID, of: webhook.BudgetThreshold,
		data: map[string]string{"agent_id": before.AgentID, "limit": c.Limit, "threshold": percent},
		once: string(webhook.BudgetThreshold) + "." + c.Limit + "." + percent, mark: billing.Day(now).Unix()})
	return err
}
