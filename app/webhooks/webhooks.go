// Package webhooks holds the use cases of webhooks: endpoints, deliveries and
// reminders.
package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"agentproxy/app/changes"
	"agentproxy/app/idempotency"
	"agentproxy/app/notify"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Service is the use cases of webhooks: the endpoint, its deliveries, and their
// attempts.
type Service struct {
	store   ports.Unit[repos]
	clock   ports.Clock
	ids     ports.IDs
	secrets ports.Secrets
	sender  ports.Sender
	hub     *changes.Hub
	log     *slog.Logger
	slots   *slots
}

// New wires the use cases.
func New(store ports.Store, clock ports.Clock, ids ports.IDs, secrets ports.Secrets, sender ports.Sender,
	hub *changes.Hub, log *slog.Logger) *Service {
	return &Service{store: narrow(store), clock: clock, ids: ids, secrets: secrets, sender: sender, hub: hub, log: log,
		slots: newSlots(clock)}
}

// EndpointView is an agent's endpoint with the end of its secret, which
// distinguishes one secret from another.
type EndpointView struct {
	webhook.Endpoint
	SecretHint string // empty if no secret was ever issued
}

// hintLength is how many characters of a secret are shown.
const hintLength = 4

// Endpoint returns the endpoint of an agent.
func (u *Service) Endpoint(ctx context.Context, agentID string) (v EndpointView, err error) {
	err = u.store.Read(ctx, func(ctx context.Context, tx repos) error {
		v.Endpoint, err = tx.Webhooks().Endpoint(ctx, agentID)
		return err
	})
	if err == nil && v.Version > 0 {
		secret := u.secrets.WebhookSecret(agentID, v.Version)
		v.SecretHint = secret[len(secret)-hintLength:]
	}
	return v, err
}

// RotateSecret makes the next secret, which is returned only here. Both sign for
// a day.
func (u *Service) RotateSecret(ctx context.Context, agentID string) (secret string, at time.Time, err error) {
	var e webhook.Endpoint
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := u.clock.Now()
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		if e, err = tx.Webhooks().Endpoint(ctx, agentID); err != nil {
			return err
		}
		if e, err = e.Rotate(now); err != nil {
			return err
		}
		agent.WebhookVersion, agent.UpdatedAt = e.Version, now
		if err := tx.Agents().Put(ctx, agent); err != nil {
			return err
		}
		return tx.Webhooks().PutEndpoint(ctx, e)
	})
	if err != nil {
		return "", at, err
	}
	u.hub.AgentChanged(agentID)
	return u.secrets.WebhookSecret(agentID, e.Version), e.RotatedAt, nil
}

// Test sends an event without content once, and returns its id. 10 are sent an hour.
func (u *Service) Test(ctx context.Context, agentID string) (eventID string, err error) {
	return u.TestOnce(ctx, agentID, idempotency.Call{})
}

// TestOnce is like Test with an idempotency key: a repeated call sends nothing.
func (u *Service) TestOnce(ctx context.Context, agentID string, call idempotency.Call) (eventID string, err error) {
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := u.clock.Now()
		prev, found, err := idempotency.FirstRun(ctx, tx, agentID, call, now)
		if eventID = prev.Resource; err != nil || found {
			return err
		}
		e, err := tx.Webhooks().Endpoint(ctx, agentID) // which others that send a test wait for
		if err != nil {
			return err
		}
		if err := e.Ready(); err != nil {
			return err
		}
		mark, err := tx.Webhooks().NotifiedUpTo(ctx, agentID, string(webhook.Test))
		if err != nil {
			return err
		}
		used, wait := webhook.TakeUnverified(time.UnixMicro(mark).UTC(), now)
		if wait > 0 {
			return account.ErrRateLimited.Msgf("10 test events an hour are sent; wait for the seconds " +
				"in Retry-After").After(wait)
		}
		if _, err := tx.Webhooks().MarkNotified(ctx, agentID, string(webhook.Test), used.UnixMicro()); err != nil {
			return err
		}
		eventID, err = notify.Enqueue(ctx, tx, u.ids, now, notify.Notification{AgentID: agentID, Of: webhook.Test,
			Data: map[string]string{"agent_id": agentID}})
		if err != nil {
			return err
		}
		return idempotency.Store(ctx, tx, agentID, call, eventID, ports.Completed, now)
	})
	return eventID, err
}

// Deliveries lists an agent's deliveries, newest first; an empty status lists
// all.
func (u *Service) Deliveries(
	ctx context.Context, agentID string, of webhook.Status, page domain.Page,
) (list domain.List[webhook.Delivery], err error) {
	if of != "" && !slices.Contains(webhook.Statuses, of) {
		return list, domain.InvalidField("status", "must be pending, delivered or failed")
	}
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err = tx.Webhooks().Deliveries(ctx, agentID, of, page)
		return err
	})
	return list, err
}

// Redeliver schedules a delivery again now, whatever its outcome.
func (u *Service) Redeliver(ctx context.Context, agentID, id string) (d webhook.Delivery, err error) {
	return u.RedeliverOnce(ctx, agentID, id, idempotency.Call{})
}

// RedeliverOnce is like Redeliver with an idempotency key: a repeated call sends nothing.
func (u *Service) RedeliverOnce(
	ctx context.Context, agentID, id string, call idempotency.Call,
) (d webhook.Delivery, err error) {
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := u.clock.Now()
		_, found, err := idempotency.FirstRun(ctx, tx, agentID, call, now)
		if err != nil {
			return err
		}
		was, err := tx.Webhooks().Delivery(ctx, agentID, id)
		if d = was; err != nil || found {
			return err
		}
		if err := idempotency.Store(ctx, tx, agentID, call, id, ports.Completed, now); err != nil {
			return err
		}
		e, err := tx.Webhooks().Endpoint(ctx, agentID)
		if err != nil {
			return err
		}
		if d, err = was.Redeliver(e, now); err != nil || d == was {
			return err
		}
		if pending, err := tx.Webhooks().Pending(ctx, agentID, webhook.MaxPending); err != nil {
			return err
		} else if pending >= webhook.MaxPending && was.Status != webhook.Pending {
			return webhook.ErrPending
		}
		if err := tx.Webhooks().PutDelivery(ctx, d); err != nil {
			return err
		}
		return notify.Schedule(ctx, tx, d, now)
	})
	return d, err
}

// Deliver runs the job of one attempt. It does nothing if the delivery is over or due
// at another time, which has a job of its own. It returns a ports.RequeueAfter if
// the attempt has to wait.
func (u *Service) Deliver(ctx context.Context, id string, due time.Time) error {
	err := u.deliver(ctx, id, due)
	if _, requeued := errors.AsType[ports.RequeueAfter](err); err != nil && !requeued {
		return fmt.Errorf("deliver %s: %w", id, err)
	}
	return err
}

func (u *Service) deliver(ctx context.Context, id string, due time.Time) error {
	var d webhook.Delivery
	var to webhook.Endpoint
	penniless := false
	err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		if d, err = tx.Webhooks().LoadDelivery(ctx, id); err != nil {
			return err
		}
		if to, err = tx.Webhooks().PeekEndpoint(ctx, d.AgentID); err != nil || to.Answered() {
			return err
		}
		w, err := tx.Ledger().Wallet(ctx, d.AgentID)
		penniless = err == nil && w.Balance() <= 0 && w.Held.Total() <= 0 && w.Credited() <= 0
		return err
	})
	if errors.Is(err, webhook.ErrNotFound) || err == nil && (d.Status != webhook.Pending || !d.NextAttemptAt.Equal(due)) {
		return nil
	}
	if err != nil {
		return err
	}
	if wait := due.Sub(u.clock.Now()); wait > 0 {
		return ports.RequeueAfter(wait)
	}
	if penniless { // accounts without money are as many as one likes
		return ports.RequeueAfter(maxRest)
	}
	release, wait := u.slots.acquire(ctx, d.Type, to)
	if release == nil {
		return ports.RequeueAfter(wait)
	}
	defer release()
	// Read with the slot: an agent that changes its URL is not called at the old one.
	m, err := u.message(ctx, d)
	if err != nil {
		return err
	}
	host := webhook.Endpoint{URL: m.URL}.Host()
	if m.Stranger && host != to.Host() { // counted was another one
		return ports.RequeueAfter(requeueStep)
	}
	var out *webhook.Outcome
	if m.URL != "" {
		sent, err := u.sender.Send(ctx, m)
		if err != nil {
			return err
		}
		if out = &sent; m.Stranger && sent.OK() {
			u.slots.answered(host)
		}
	}
	return u.record(context.WithoutCancel(ctx), id, out)
}

// message returns what is sent of a delivery; its URL is empty if nothing is.
func (u *Service) message(ctx context.Context, d webhook.Delivery) (m ports.Message, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		to, err := tx.Webhooks().Endpoint(ctx, d.AgentID)
		if err != nil || to.Ready() != nil {
			return err
		}
		e, err := tx.Outbox().Event(ctx, d.EventID)
		if err != nil {
			return err
		}
		m = ports.Message{URL: to.URL, ID: e.ID, At: u.clock.Now(), Body: u.sender.Body(e), Stranger: to.Stranger(d.Type)}
		for _, version := range to.Signing(m.At) {
			m.Secrets = append(m.Secrets, u.secrets.WebhookSecrets(d.AgentID, version)...)
		}
		return nil
	})
	return m, err
}

// record stores the outcome of an attempt, and the job of the next one. A nil
// outcome means that nothing was sent.
func (u *Service) record(ctx context.Context, id string, out *webhook.Outcome) error {
	var off string
	err := u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := u.clock.Now()
		off = ""
		was, err := tx.Webhooks().LoadDelivery(ctx, id)
		if err != nil {
			return err
		}
		before, err := tx.Webhooks().Endpoint(ctx, was.AgentID)
		if err != nil {
			return err
		}
		d, e := was.Abandon(before), before
		if out != nil {
			d, e = was.After(before, *out, now, rand.Float64())
		}
		if e != before {
			if err := tx.Webhooks().PutEndpoint(ctx, e); err != nil {
				return err
			}
		}
		if before.State() == webhook.Enabled && e.State() == webhook.Disabled {
			off = e.AgentID
		}
		if err := tx.Webhooks().PutDelivery(ctx, d); err != nil {
			return err
		}
		return notify.Schedule(ctx, tx, d, now)
	})
	if err == nil && off != "" {
		u.log.Warn("webhook disabled", "agent_id", off, "delivery_id", id)
	}
	return err
}
