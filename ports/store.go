// Package ports declares what the core needs from outside, one port a file. The comment of a
// method states its contract, and a suite in test/contract checks each adapter against it.
package ports

import (
	"context"

	"agentproxy/domain"
)

// Store runs units of work: each call to View or Update is one, and its reads name what it is going to read.
type Store interface {
	// View runs fn on a consistent read-only snapshot.
	View(ctx context.Context, reads ReadSet, fn func(ctx context.Context, tx Tx) error) error
	// Read is like View for a single query, which is a snapshot by itself. It may run fn again, as Update.
	Read(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
	// Update commits if fn returns nil and rolls back otherwise. Rows that fn
	// reads stay locked until then, and so does an Idempotency-Key that it looks
	// for, found or not. It may run as a savepoint of a transaction that other
	// units share, and again if that transaction fails or cannot be serialized,
	// so fn changes only tx and variables it assigns anew, and nothing leaves
	// before Update returns. After domain.ErrUnavailable it may have been
	// committed or not: the caller repeats it under the same reference.
	Update(ctx context.Context, reads ReadSet, fn func(ctx context.Context, tx Tx) error) error
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
}

// Tx hands out the repositories of one unit of work.
type Tx interface {
	Agents() Agents
	Referrers() Referrers
	Ledger() Ledger
	Statements() Statements
	Sessions() Sessions
	Traffic() Traffic
	Health() Health
	Events() Events
	Counters() Counters
	Idempotency() Idempotency
	Addresses() Addresses
	Changes() Changes
	Jobs() Jobs
	PayAddresses() PayAddresses
	Recharges() Recharges
	Transfers() Transfers
	Outbox() Outbox
	Webhooks() Webhooks
	Devchain() Devchain
	Orders() Orders
	Reconciliations() Reconciliations
	UsageCounts() UsageCounts
	Claims() Claims
	Replacements() Replacements
	Trials() Trials
	Policies() Policies
	Workers() Workers
	Peers() Peers
	ExitLog() ExitLog
	Keys() Keys
	AuditTrail() AuditTrail
	Overview() Overview
	Folds() Folds
	Certificates() Certificates
	KeyWallets() KeyWallets
	ExitMeasures() ExitMeasures
}

// ErrDuplicate reports that a row with the same unique reference exists.
var ErrDuplicate = &domain.Error{Kind: domain.Conflict, Code: "DUPLICATE", Message: "this was booked before"}
