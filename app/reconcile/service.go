package reconcile

import (
	"log/slog"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/ordering"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// The bounds of a reconciliation.
const (
	// Every is the age at which RunDue repeats the reconciliation of a provider.
	Every = 24 * time.Hour
	// listTimeout bounds the reading of one provider's list, of which a run has several.
	listTimeout = 40 * time.Second
	callTimeout = 20 * time.Second
	// listedAtMost is how long a list may be.
	listedAtMost = 20_000
	// changedAtMost is how many orders of a list are given up or decided in one run; the
	// next one goes on.
	changedAtMost = 100
	lookupBatch   = 256
)

// Outcome is what was done about a disposition.
type Outcome string

// Cancelled: it was given up at the provider. Adopted: it is the order now. Remains: the
// provider refused to take it back. Left: it is for the next run, or for the operator.
const (
	Cancelled Outcome = "cancelled"
	Adopted   Outcome = "adopted"
	Remains   Outcome = "remains"
	Left      Outcome = "left"
	// ends: the provider takes it back no more than before, and it runs to its end. Of an
	// order that was delivered that is known.
	ends Outcome = "runs to its end"
)

// Finding is something that a provider has and that no live session uses.
type Finding struct {
	procurement.Delivery
	Disposition procurement.Disposition
	Outcome     Outcome
	OrderID     string // of the service; empty: none is known
	SessionID   string
	Reason      string // why it remains
}

// Report is the result for one provider.
type Report struct {
	Provider string
	Listed   int // what the provider has
	Kept     int // what of it is as it should be
	Findings []Finding
	Err      error // the list could not be read: nothing was compared
}

// Orphans counts what the provider has and the service neither uses nor could give up.
func (r Report) Orphans() (n int) {
	for _, f := range r.Findings {
		if f.Disposition == procurement.Orphan || f.Disposition == procurement.Surplus && f.Outcome != Cancelled {
			n++
		}
	}
	return n
}

// Service compares what each provider lists with the orders of the service. What was
// bought for it and given up is cancelled there, what is an order of unknown outcome is
// adopted, and what no order is known for is reported.
type Service struct {
	store   ports.Unit[repos]
	clock   ports.Clock
	catalog *catalogs.Catalog
	desk    *ordering.Desk
	calls   ports.CallCounter
	log     *slog.Logger
}

// New returns a Service.
func New(store ports.Store, clock ports.Clock, catalog *catalogs.Catalog, desk *ordering.Desk,
	calls ports.CallCounter, log *slog.Logger) *Service {
	return &Service{store: narrow(store), clock: clock, catalog: catalog, desk: desk, calls: calls, log: log}
}

// ErrCannotList refuses a provider without a list.
var ErrCannotList = &domain.Error{Kind: domain.Invalid, Code: "CANNOT_LIST",
	Message: "the provider has no list of what was ordered there"}
