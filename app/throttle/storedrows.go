package throttle

import (
	"cmp"
	"context"
	"time"

	"agentproxy/domain/eventlog"
	"agentproxy/domain/exitlog"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// What rows take in the database beside their texts, with their indexes and what follows from them: of a
// session its entries, its usage and its end, of a delivery to a webhook its job.
const (
	sessionBytes = 2000
	eventBytes   = 100
	ruleBytes    = 4
	policyBytes  = 200
	workerBytes  = 120
	feedBytes    = 300
	webhookBytes = 900
	exitBytes    = 109
)

// Count returns a store whose units of work have what they store counted, once they are committed: what they
// do for an agent is what it is charged for, and an event for a webhook is its owner's.
func (s *Stored) Count(store ports.Store) ports.Store {
	if s == nil {
		return store
	}
	return countingStore{store, s}
}

type countingStore struct {
	ports.Store
	stored *Stored
}

// Update calls Update of the store, and counts the rows of the run that was committed.
func (s countingStore) Update(
	ctx context.Context, reads ports.ReadSet, fn func(ctx context.Context, tx ports.Tx) error,
) error {
	agentID := ports.AgentOf(ctx)
	var last *countingTx
	err := s.Store.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
		last = &countingTx{Tx: tx, rows: counted{agentID: agentID}}
		return fn(ctx, last)
	})
	if err == nil && last != nil {
		s.stored.Add(last.rows.agentID, last.rows.bytes)
		for _, o := range last.rows.others {
			s.stored.Add(o.agentID, o.bytes)
		}
	}
	return err
}

// counted is what a unit of work stores: for one agent, and for others where it is the service's own.
type counted struct {
	agentID string
	bytes   int64
	others  []counted
}

// add adds a row of an agent; of an empty one, the row of the agent that the call or the unit is for. A row for
// no agent is not counted.
func (c *counted) add(ctx context.Context, agentID string, bytes int) {
	if agentID == "" {
		agentID = cmp.Or(ports.AgentOf(ctx), c.agentID)
	}
	if c.agentID == "" {
		c.agentID = agentID
	}
	if agentID != c.agentID {
		c.others = append(c.others, counted{agentID: agentID, bytes: int64(bytes)})
		return
	}
	c.bytes += int64(bytes)
}

// countingTx is a unit of work. Its repositories are its fields, so that handing one out allocates nothing.
type countingTx struct {
	ports.Tx
	rows     counted
	outbox   countingOutbox
	webhooks countingWebhooks
	sessions countingSessions
	events   countingEvents
	policies countingPolicies
	workers  countingWorkers
	exits    countingExits
}

// Webhooks counts deliveries.
func (t *countingTx) Webhooks() ports.Webhooks {
	t.webhooks = countingWebhooks{t.Tx.Webhooks(), &t.rows}
	return &t.webhooks
}

// Outbox counts events.
func (t *countingTx) Outbox() ports.Outbox {
	t.outbox = countingOutbox{t.Tx.Outbox(), &t.rows}
	return &t.outbox
}

// Sessions counts sessions that are bought.
func (t *countingTx) Sessions() ports.Sessions {
	t.sessions = countingSessions{t.Tx.Sessions(), &t.rows}
	return &t.sessions
}

// Events counts what is logged for an agent. What the gateway logs of connections is bounded by itself.
func (t *countingTx) Events() ports.Events {
	t.events = countingEvents{t.Tx.Events(), &t.rows}
	return &t.events
}

// Policies counts rules that an agent sets.
func (t *countingTx) Policies() ports.Policies {
	t.policies = countingPolicies{t.Tx.Policies(), &t.rows}
	return &t.policies
}

// Workers counts workers that are made.
func (t *countingTx) Workers() ports.Workers {
	t.workers = countingWorkers{t.Tx.Workers(), &t.rows}
	return &t.workers
}

// ExitLog counts records of connections.
func (t *countingTx) ExitLog() ports.ExitLog {
	t.exits = countingExits{t.Tx.ExitLog(), &t.rows}
	return &t.exits
}

type countingOutbox struct {
	ports.Outbox
	rows *counted
}

func (o *countingOutbox) Append(ctx context.Context, e webhook.Event) error {
	bytes := feedBytes
	for name, text := range e.Data {
		bytes += len(name) + len(text)
	}
	o.rows.add(ctx, e.AgentID, bytes)
	return o.Outbox.Append(ctx, e)
}

type countingWebhooks struct {
	ports.Webhooks
	rows *counted
}

func (r *countingWebhooks) InsertDelivery(ctx context.Context, d webhook.Delivery) error {
	r.rows.add(ctx, d.AgentID, webhookBytes)
	return r.Webhooks.InsertDelivery(ctx, d)
}

type countingSessions struct {
	ports.Sessions
	rows *counted
}

func (r *countingSessions) Insert(ctx context.Context, s session.Session) error {
	bytes := sessionBytes
	for name, text := range s.Labels {
		bytes += len(name) + len(text)
	}
	r.rows.add(ctx, s.AgentID, bytes)
	return r.Sessions.Insert(ctx, s)
}

type countingEvents struct {
	ports.Events
	rows *counted
}

func (r *countingEvents) Append(ctx context.Context, sessionID string, events []eventlog.Event) error {
	bytes := 0
	for i := range events {
		e := &events[i]
		bytes += eventBytes + len(e.TargetHost) + len(e.Message) + len(e.Worker)
	}
	r.rows.add(ctx, "", bytes)
	return r.Events.Append(ctx, sessionID, events)
}

type countingPolicies struct {
	ports.Policies
	rows *counted
}

func (r *countingPolicies) Put(ctx context.Context, sessionID string, own policy.Own) error {
	bytes := policyBytes
	for _, list := range [][]string{own.Allow, own.Deny, own.Ports} {
		for _, rule := range list {
			bytes += ruleBytes + len(rule)
		}
	}
	r.rows.add(ctx, "", bytes)
	return r.Policies.Put(ctx, sessionID, own)
}

type countingWorkers struct {
	ports.Workers
	rows *counted
}

func (r *countingWorkers) Insert(ctx context.Context, w worker.Worker) (int64, error) {
	r.rows.add(ctx, "", workerBytes+len(w.Name))
	return r.Workers.Insert(ctx, w)
}

type countingExits struct {
	ports.ExitLog
	rows *counted
}

func (r *countingExits) Append(
	ctx context.Context, replica string, at time.Time, batch []exitlog.Connection,
) error {
	for i := range batch {
		r.rows.add(ctx, batch[i].Agent, exitBytes)
	}
	return r.ExitLog.Append(ctx, replica, at, batch)
}

// CountQueue returns a queue whose calls are counted like what they store.
func (s *Stored) CountQueue(queue ports.TelemetryQueue) ports.TelemetryQueue {
	if s == nil || queue == nil {
		return queue
	}
	return countingQueue{queue, s}
}

type countingQueue struct {
	ports.TelemetryQueue
	stored *Stored
}

func (q countingQueue) Publish(ctx context.Context, agentID string, call []byte) (ports.QueuePlace, error) {
	place, err := q.TelemetryQueue.Publish(ctx, agentID, call)
	if err == nil {
		q.stored.Add(agentID, int64(len(call)))
	}
	return place, err
}
