// Package procurement holds what the service buys from proxy sellers: what can be
// asked of one, what it delivers, which of several is asked, and how an order
// that may or may not have happened is decided.
package procurement

import (
	"net/netip"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

// Capabilities are the features of a provider.
type Capabilities struct {
	// InProcess: orders do no IO, cost nothing and cannot be lost, so they are placed
	// inside the unit of work and are not written down.
	InProcess bool
	// ViaUpstream: exits are reached through the provider's own proxies. Else they are
	// addresses of this host, which the gateway binds to.
	ViaUpstream bool
	// Idempotent: the provider documents an idempotency key, so that an order
	// whose outcome is unknown may be sent again under its own key.
	Idempotent bool
	// KeepsOrderKey is set if Find returns the key of an order. Otherwise an unknown
	// order is searched for among those that were not listed before.
	KeepsOrderKey bool
	// KeepsTrafficOrderKey: the same of traffic alone, where addresses carry no key.
	KeepsTrafficOrderKey bool
	// Async: an order is accepted first and delivered later.
	Async bool
	// Renews and Cancels report whether the calls of these names are supported. An
	// order that cannot be cancelled costs money until its end.
	Renews, Cancels bool
	// CancelsTraffic: the same of traffic alone, where addresses run to their end.
	CancelsTraffic bool
	// Direct: each order has a credential and a cap of its own, so that it may be
	// given to an agent.
	Direct bool
	// CapUnit is the number of bytes that traffic caps are multiples of; it is 0 if
	// the provider caps nothing. Only multiples of it can be sold to a direct session
	// without giving traffic away.
	CapUnit int64
	// Workers: any number of exits of one order may be in use at once. Another Token is another exit,
	// or the exits are addresses of this host that may be picked.
	Workers bool
	// CounterLag is how much later than it passed traffic may still be added to the
	// counter of Usage, by the kind's documents or else a safe guess. A count is complete
	// once it is that much younger than the end of the traffic.
	CounterLag time.Duration
}

// Words names the capabilities, for the operator.
func (c Capabilities) Words() []string {
	words := []string{}
	for _, f := range []struct {
		has  bool
		word string
	}{
		{c.InProcess, "places no orders"}, {c.ViaUpstream, "uses the seller's proxy"},
		{c.Idempotent, "repeats orders safely"},
		{c.KeepsOrderKey, "finds lost orders"}, {c.KeepsTrafficOrderKey, "finds lost orders of traffic"},
		{c.Async, "delivers later"}, {c.Renews, "renews"}, {c.Cancels, "cancels"}, {c.CancelsTraffic, "cancels traffic"},
		{c.Direct, "sells direct access"}, {c.CapUnit > 0, "caps traffic"},
	} {
		if f.has {
			words = append(words, f.word)
		}
	}
	return words
}

// Labels reports whether orders of a type carry their key.
func (c Capabilities) Labels(t session.Type) bool {
	return c.KeepsOrderKey || c.KeepsTrafficOrderKey && t == session.Dynamic
}

// CanCancel reports whether an order of a type can be cancelled.
func (c Capabilities) CanCancel(t session.Type) bool {
	return c.Cancels || c.CancelsTraffic && t == session.Dynamic
}

// Intent is what is to be bought for one session.
type Intent struct {
	// Key is the id of the order: sent as idempotency key, label or user name,
	// where the provider takes one.
	Key       string
	SessionID string
	Type      session.Type
	SKU       string // what the provider calls the product
	Location  session.Location
	Quantity  int          // static: IPs
	Days      int          // static
	Bytes     int64        // dynamic: the traffic that is sold
	MaxCost   domain.Money // a quote above it is not bought; 0: no limit
	// Taken are addresses of a local provider that live sessions own.
	Taken map[string]bool
	// Avoid are addresses, as text, that are not given to this agent, where the provider can choose. What it gives
	// at random may be one of them.
	Avoid map[string]bool
	// Passes reports whether an address may be given, where the provider can choose; nil: any.
	Passes func(netip.Addr) bool
}

// Allows reports whether a provider that can choose may give an address.
func (in Intent) Allows(addr netip.Addr) bool {
	return !in.Avoid[addr.String()] && (in.Passes == nil || in.Passes(addr))
}

// State is how far an order has come at the provider.
type State string

// Pending: accepted, and not delivered yet. Live: it can be used. Gone: it has
// ended, was refunded, or is not there any more.
const (
	Pending State = "pending"
	Live    State = "live"
	Gone    State = "gone"
)

// Delivery is an order as the provider has it.
type Delivery struct {
	Ref       string // the provider's id of it
	Label     string // the key of the intent, where the provider keeps it
	State     State
	SKU       string           // if the list reports it
	Location  session.Location // if the list reports it
	Quantity  int              // if the list reports it
	CreatedAt time.Time        // by the provider's clock; zero if unknown
	ExpiresAt time.Time        // the provider's own end, never computed here; zero: none
	Cost      domain.Money     // charged by the provider; 0 if unknown
	Access    Access           // dynamic
	IPs       []IP             // static; dynamic of a local provider: the first exit
}

// Access is the credential of a dynamic order.
type Access struct {
	User, Password string
	CapBytes       int64 // the provider stops itself there; 0: no cap
}

// String hides the credential from logs and messages.
func (a Access) String() string { return "hidden" }

// GoString hides it from %#v.
func (a Access) GoString() string { return "hidden" }

// IP is one address of a static order.
type IP struct {
	ID             string     // the provider's id of it, which may change
	Addr           netip.Addr // the exit
	Host           string     // where its proxy listens; empty: the address is this host's
	HTTPPort       uint16     // 0 if not supported
	SOCKSPort      uint16     // 0 if not supported
	PrefersSOCKS   bool       // the SOCKS5 port is the better one
	User, Password string
	Trusted        bool   // the operator named the host
	Country        string // ISO 3166-1 alpha-2; empty if unknown
	ExpiresAt      time.Time
}

// String hides the credential from logs and messages.
func (ip IP) String() string { return ip.Addr.String() }

// GoString hides it from %#v.
func (ip IP) GoString() string { return ip.String() }

// Endpoint returns the proxy of an address for a protocol, or for the other one
// if that is not supported. An empty protocol is the one that the address prefers.
// It returns false if neither is supported.
func (ip IP) Endpoint(p session.Protocol) (Endpoint, bool) {
	if p == "" && ip.PrefersSOCKS {
		p = session.SOCKS5
	}
	e := Endpoint{Protocol: p, Host: ip.Host, Port: ip.HTTPPort, User: ip.User, Password: ip.Password,
		Trusted: ip.Trusted}
	if p == session.SOCKS5 && ip.SOCKSPort != 0 || ip.HTTPPort == 0 {
		e.Protocol, e.Port = session.SOCKS5, ip.SOCKSPort
	} else {
		e.Protocol = session.HTTP
	}
	return e, e.Port != 0 && e.Host != ""
}

// Endpoint is an upstream proxy and the credential for it.
type Endpoint struct {
	Protocol       session.Protocol
	Host           string
	Port           uint16
	User, Password string
	// TLS: connections to the proxy are encrypted; its certificate must be valid for Host.
	TLS bool
	// Trusted: the operator named the host. One that a provider's answer named is
	// checked like a target before it is dialled.
	Trusted bool
	// LostStatus is the HTTP status of CONNECT by which the proxy reports that the exit of a session
	// is gone and is not replaced; 0 if it does not report it.
	LostStatus int
}

// String hides the credential, of which the user name may be a part.
func (e Endpoint) String() string { return e.Host }

// GoString hides it from %#v.
func (e Endpoint) GoString() string { return e.Host }

// Target selects an exit of an Access.
type Target struct {
	Location session.Location
	// Token keeps an exit: 8 lower case letters and digits, beginning with a
	// letter. Another one is another exit. Empty: every connection has its own.
	Token    string
	Turn     int              // how many exits the session had before; each has another Token
	TTL      time.Duration    // how long the exit is kept at most; 0: as long as the provider can
	Protocol session.Protocol // of the endpoint; empty: http
	// Strict: an exit that is lost is not replaced. Invalid where it cannot be asked for.
	Strict bool
}

// Usage is what a provider counted.
type Usage struct {
	Bytes int64
	AsOf  time.Time
	Gone  bool // the access is not there any more
}

// Quote is what an order would cost.
type Quote struct {
	Cost  domain.Money
	Stock Stock
}

// Affordable refuses a quote above the most that the order may cost.
func (o Order) Affordable(q Quote) error {
	if o.Intent.MaxCost == 0 || q.Cost <= o.Intent.MaxCost {
		return nil
	}
	return Refuse(Conflict, "it costs "+q.Cost.String()+" and may cost "+o.Intent.MaxCost.String())
}

// Stock is whether something can be delivered.
type Stock string

// StockUnknown is used if the provider does not report its stock.
const (
	StockYes     Stock = "yes"
	StockNo      Stock = "no"
	StockUnknown Stock = "unknown"
)

// Offer is one thing that a provider sells at the moment.
type Offer struct {
	SKU      string
	Type     session.Type
	Name     string
	Location session.Location // empty: everywhere
	Days     []int            // static
	Stock    Stock
	Count    int          // 0 if unknown
	Cost     domain.Money // a GB, or an IP for the first of Days; 0 if unknown
}

// ProviderBalance is the operator's balance at a provider. Known is false if
// the provider does not report it.
type ProviderBalance struct {
	Amount domain.Money
	Known  bool
}

// Renewed is what became of one address in a renewal.
type Renewed struct {
	Addr      netip.Addr
	ExpiresAt time.Time
	Err       error // nil: renewed; else an *Error
}
