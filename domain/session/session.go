// Package session holds the life of a proxy session: what may be asked for,
// what states it passes through, and what it gives back when it ends.
package session

import (
	"net/netip"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/exit"
)

// IDPrefix begins the id of every session and IDLength is the number of
// characters after it.
const (
	IDPrefix = "sess_"
	IDLength = 20
)

// Type is how a session is billed.
type Type string

// Dynamic sessions rotate their exit and are billed by traffic; static sessions
// own fixed addresses and are billed by time.
const (
	Dynamic Type = "dynamic"
	Static  Type = "static"
)

// Types lists every type.
var Types = []Type{Dynamic, Static}

// Status is the state of a session. The last three never change again.
type Status string

// The states: creating → active → terminated | expired, creating → failed |
// terminated.
const (
	Creating   Status = "creating"
	Active     Status = "active"
	Terminated Status = "terminated"
	Expired    Status = "expired"
	Failed     Status = "failed"
)

// Statuses lists every status.
var Statuses = []Status{Creating, Active, Terminated, Expired, Failed}

// Over reports whether the session has ended for good.
func (s Status) Over() bool { return s == Terminated || s == Expired || s == Failed }

// Reason is why a session ended. It is empty while the session is live.
type Reason string

// The reasons a session can end for.
const (
	AgentRequest     Reason = "agent_request"
	TrafficExhausted Reason = "traffic_exhausted"
	TimeExpired      Reason = "time_expired"
	ProviderFailed   Reason = "provider_failed"
	ProviderLost     Reason = "provider_lost"
	AccountDisabled  Reason = "account_disabled"
	OperatorRequest  Reason = "operator_request"
)

// Protocol is the proxy protocol of full_url; the gateway serves both on one
// port.
type Protocol string

// The proxy protocols.
const (
	HTTP   Protocol = "http"
	SOCKS5 Protocol = "socks5"
)

// Protocols lists every protocol.
var Protocols = []Protocol{HTTP, SOCKS5}

// RotationMode is what changes the exit of a dynamic session.
type RotationMode string

// On demand: only the rotate call. Timed: the first new connection after each
// interval too. Fixed: never by itself; the rotate call still works.
const (
	OnDemand RotationMode = "on_demand"
	Timed    RotationMode = "timed"
	Fixed    RotationMode = "fixed"
)

// RotationModes lists every mode.
var RotationModes = []RotationMode{OnDemand, Timed, Fixed}

// Exit is where a session's traffic leaves: an address of this host that the
// gateway binds to.
type Exit struct {
	IP netip.Addr
	// Ended is set of an address of a static session that ended before it. It keeps its place, because the user
	// names of the others end in theirs.
	Ended bool
}

// Addresses returns the addresses of exits that have not ended, as text.
func Addresses(exits []Exit) []string {
	ips := make([]string, 0, len(exits))
	for _, e := range exits {
		if !e.Ended {
			ips = append(ips, e.IP.String())
		}
	}
	return ips
}

// Location is where the exits are sold as being. Country is ISO 3166-1 alpha-2,
// upper case; both may be empty.
type Location struct {
	Country string
	City    string
}

// Rotation is the rotation setting of a dynamic session and what came of it.
type Rotation struct {
	Mode     RotationMode
	Interval time.Duration // 0 unless Timed
	Count    int           // rotations so far; the user name ends in it
	Skipped  int           // exits of the seller that were passed over because they did not meet the rule
	LastAt   time.Time
	NextAt   time.Time // zero unless Timed
}

// Turn returns how many exits of its seller the session had or passed over before the one that it has.
func (r Rotation) Turn() int { return r.Count + r.Skipped }

// Failure is why provisioning failed, with code and message of the public API.
type Failure struct {
	Code    string
	Message string
}

// Session is one proxy session of one agent.
type Session struct {
	ID        string
	AgentID   string
	BoughtBy  Buyer
	Type      Type
	Status    Status
	Reason    Reason
	ProductNo string
	Provider  string       // who sold it; the name of a ports.Provider
	Quantity  int          // IPs; 1 for a dynamic session
	Days      int          // static: duration in days
	Bytes     int64        // dynamic: all traffic bought, in bytes
	FairUse   int64        // static: bytes that may pass through it in all; 0 without a limit
	Price     domain.Money // dynamic: of the traffic that it was created with
	Protocol  Protocol
	Location  Location
	Rotation  Rotation
	Exits     []Exit // dynamic: the current one; static: one for each IP
	Money     Money
	Failure   Failure
	Labels    Labels
	TopUps    TopUps    // dynamic
	Require   exit.Rule // that exits meet which are chosen from now on

	AllowedIPs []netip.Prefix // where clients may connect from; nil is anywhere
	PasswordNo int            // how often the password was replaced
	Cuts       int            // how often open connections were closed

	CreatedAt   time.Time
	ActivatedAt time.Time
	ExpiresAt   time.Time // static, from activation
	EndedAt     time.Time
}

// Limit returns how many bytes may pass through the session in all; 0 without a limit.
func (s Session) Limit() int64 { return s.Bytes + s.FairUse }

// Buyer is the key that bought a session, for whose budget counts what it costs. It never changes.
type Buyer struct {
	KeyID string // empty: not known
	Name  string // of the key, then
}

// Money is what a session holds and has cost, each split by where it came from.
type Money struct {
	Held     billing.Funds // 0 once the session is settled
	Charged  billing.Funds
	Refunded billing.Funds
	// Kept is the part of Charged that pays for no day of the addresses that a static session has: the used days of
	// those that ended, and the fees of replacements.
	Kept domain.Money
}
