package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Provider sells proxies: traffic (Dynamic), addresses (Static) or both. Its
// errors are *procurement.Error; any other is Ambiguous. It holds no state that an
// order depends on, so any replica may go on with what another began.
type Provider interface {
	// Name is how products, orders and sessions refer to it.
	Name() string
	Capabilities() procurement.Capabilities
	// Ready is false while the provider is left alone, because it failed again
	// and again.
	Ready() bool
	// Offers lists what it sells and has at the moment. A provider without such a
	// list returns none.
	Offers(ctx context.Context) ([]procurement.Offer, error)
	// Balance is what the service has there.
	Balance(ctx context.Context) (procurement.ProviderBalance, error)
	// Quote is what an order would cost, and whether it can be delivered. It buys
	// nothing. One that cannot tell returns a zero cost and procurement.StockUnknown.
	Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error)
	// Order buys, by one request that is sent once. Automatic renewal is off. It
	// is Ambiguous whenever the request may have been executed: the answer did not
	// come, is a server error, or cannot be understood. Where the provider is
	// Repeatable, a repeated order of one Key is answered as before.
	Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error)
	// Find lists what may be the order of an intent: where the provider is
	// Labelled what has its Key, else the newest orders of its product. Nothing
	// is no error.
	Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error)
	// Read tells how an order stands; NotFound when there is no such order.
	// Reading a second time gives the same, as long as nothing happens there.
	Read(ctx context.Context, ref string) (procurement.Delivery, error)
	// Cancel gives an order up, so that it cannot be used and costs no more.
	// Repeating it, or cancelling what is not there, is no error. Unsupported
	// where an order runs to its end.
	Cancel(ctx context.Context, ref string) error
}

// Dynamic sells traffic through exits that change.
type Dynamic interface {
	Provider
	// Disable stops an access for good and keeps its counter, so that what passed
	// through it can still be read by Usage and charged when a direct session ends.
	// Repeating it changes nothing. It fails with Unsupported where the access has no
	// credential of its own.
	Disable(ctx context.Context, ref string) error
	// Usage is what passed through an access since it was created.
	Usage(ctx context.Context, ref string) (procurement.Usage, error)
	// Endpoint is the proxy of an exit. It does no IO: the same arguments give the
	// same endpoint, another Token another one. Invalid when the place or the time
	// cannot be asked for.
	Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error)
	// NewExit is the exit after the current one, else OutOfStock. It does no IO.
	// The zero Exit says that the next Token is the next exit.
	NewExit(in procurement.Intent, current session.Exit) (session.Exit, error)
}

// Static sells addresses for a time.
type Static interface {
	Provider
	// Renew extends all addresses of an order by the term of the intent, whose Key
	// names this renewal. The result says for each address what became of it; an
	// error says that nothing was extended, or Ambiguous.
	Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error)
}

// Callbacks is a provider that calls back when an order has changed. A call says
// only that the order should be read.
type Callbacks interface {
	// Callback verifies the signature of a call and returns the refs that it is
	// about, or domain.ErrInvalid. None: it may be about any order that is open or
	// pending.
	Callback(header map[string][]string, body []byte, now time.Time) (refs []string, err error)
}

// OrderFilter narrows a list of orders; empty fields do not.
type OrderFilter struct {
	Status   procurement.Status
	Provider string
	Frozen   bool // only those that wait for the operator
}

// Orders keeps what was bought of providers, or may have been.
type Orders interface {
	// Insert stores a planned order. It refuses one whose intent has another key or
	// another session.
	Insert(ctx context.Context, o procurement.Order) error
	// Get is procurement.ErrOrderNotFound for an unknown id.
	Get(ctx context.Context, id string) (procurement.Order, error)
	// Put writes everything but id, kind, session, provider, intent and PlannedAt,
	// and notes a change of the session. A purchase that is confirmed with the ref
	// of another confirmed purchase is ErrDuplicate, whatever was read before; an
	// unknown id is procurement.ErrOrderNotFound.
	Put(ctx context.Context, o procurement.Order) error
	// Of lists the orders of a session, the newest first: of purchases and of
	// renewals the last 100 each.
	Of(ctx context.Context, sessionID string) ([]procurement.Order, error)
	// ByRef is the confirmed order that a provider knows by a ref, the purchase
	// before renewals of it, else procurement.ErrOrderNotFound.
	ByRef(ctx context.Context, provider, ref string) (procurement.Order, error)
	// List lists orders, the newest first.
	List(ctx context.Context, f OrderFilter, page domain.Page) (domain.List[procurement.Order], error)
	// Due lists orders whose NextAt has come, the longest due first.
	Due(ctx context.Context, now time.Time, limit int) ([]string, error)
	// Rivals counts the other orders of a provider that are sent, or unknown and
	// not frozen, and of these the ones like o: the same SKU and country, where an
	// empty one is like any. What a frozen one did was done long ago. It takes turns with every other unit that asks about the provider,
	// until the unit ends.
	Rivals(ctx context.Context, o procurement.Order) (open, like int, err error)
	// Known tells which of a provider's refs belong to an order.
	Known(ctx context.Context, provider string, refs []string) (map[string]bool, error)
	// Spent is what confirmed orders of a provider that were sent at or after a time
	// cost in all. What was sent before may be in that time's balance already.
	Spent(ctx context.Context, provider string, since time.Time) (domain.Money, error)
	// Tally counts open orders, and those that are frozen.
	Tally(ctx context.Context) (open, frozen int, err error)
}
