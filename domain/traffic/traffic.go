// Package traffic holds what a gateway needs to relay a session's traffic:
// its route, its credential, the leases it may spend and what it reports back.
package traffic

import (
	"net/netip"
	"time"

	"agentproxy/domain/health"
	"agentproxy/domain/policy"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Route is a gateway's copy of one session. Its credential is derived, see
// Password.
type Route struct {
	SessionID string
	AgentID   string
	Trial     bool // the agent's account is a trial: less is allowed to it
	Type      session.Type
	Status    session.Status
	// UsedUp is set for a live session that has used all that it may for now: a static one its fair
	// use, until it is renewed.
	UsedUp bool
	Reason session.Reason // why it ended
	Exits  []session.Exit // dynamic: the current one; static: by IP index
	// Hops are the upstream proxies of the exits, one for each; nil: the gateway
	// dials targets itself, from the exits.
	Upstreams []procurement.Endpoint
	Provider  string // whose exits they are
	ProductNo string
	// Policy is the session's own rules, compiled; nil for none. PolicyReports is set if they
	// report instead of refusing.
	Policy        *policy.Rules
	PolicyReports bool
	PasswordNo    int            // passwords of this number alone are valid
	Allowed       []netip.Prefix // where clients may connect from; nil is anywhere
	Cuts          int            // connections that were made before the last of them are closed
	Rotation      int            // user names up to this number are valid
	NextAt        time.Time      // timed rotation is due from here on; zero: never
	ExpiresAt     time.Time      // static: tunnels are cut here; zero: never
}

// LeaseRequest is one session's part of a renewal: what a lease has used so far, and how
// much of it the gateway is to keep unused. All counters are cumulative
// since the lease was opened, so a request that is repeated counts nothing twice.
type LeaseRequest struct {
	SessionID   string
	Lease       string // made by the gateway, unique to this opening of the pool
	Up          int64  // bytes taken from the client
	Down        int64  // bytes written to the client
	Connections int64
	Workers     []WorkerUse // those whose counters changed since the last answer
	Report      []int64     // workers whose bytes the answer is to have
	Forget      []int64     // workers that were removed, and are in no request any more
	Want        int64       // unused bytes to hold after this request; less than now gives back
	Close       bool        // the last request of the lease: everything unused goes back
	// Lasts is how long the gateway relays after this request without another that is answered.
	Lasts time.Duration
	// Fold books what a Report has, for a reader of the usage: the grant, and when the lease was renewed, stay.
	Fold bool
}

// Report is what a calm lease has used since it was opened, as its gateway reports it between two renewals. It is
// booked when the lease is renewed, when its agent asks for the usage, or when the lease is reclaimed.
type Report struct {
	AgentID, SessionID, Lease string
	Up, Down, Connections     int64 // cumulative, like those of a LeaseRequest
}

// ReportPart is some of the reports of a replica, which are stored together and replaced as a whole.
type ReportPart struct {
	No      int
	Reports []Report // at most PartSize
}

// PartSize is how many reports are stored together: about 2 kB, so that a new version fits beside the last one.
const PartSize = 24

// Outcome is what a gateway may do with a session after a request.
type Outcome uint8

// Open: relay within Granted. Waiting: nothing more can be granted now, because
// the rest is leased elsewhere; ask again. Exhausted: used equals the limit, so
// half-close. Over: the session has ended; cut. Lost: the lease was reclaimed,
// its unreported use is not charged; open a new one.
const (
	Open Outcome = iota
	Waiting
	Exhausted
	Over
	Lost
)

// Grant answers a LeaseRequest. Granted is cumulative like the counters: the lease may
// relay Granted bytes in all, Up and Down together.
type Grant struct {
	SessionID string
	Lease     string
	Outcome   Outcome
	Granted   int64
	Bytes     map[int64]int64 // of the workers of LeaseRequest.Report on all replicas; removed ones are missing
	AgentID   string
	Calm      bool // nothing is due before all that is leased is used: the next renewal may come FoldAfter this one
}

// The rule of leases. What is outstanding is bounded by the bytes that were granted, not by the time.
const (
	MinLease        = 256 << 10        // bytes; less only near the end of the traffic
	MaxLease        = 64 << 20         // bytes
	StopAfter       = 10 * time.Second // the least that a gateway relays after its last renewal, by its own clock
	ReclaimAfter    = 15 * time.Second // a lease is reclaimed when it is idle for this long, by the database's clock
	UsualLasts      = 75 * time.Second // what a gateway relays after its last renewal, unless it is configured otherwise
	MaxLasts        = 10 * time.Minute // the most that it may be configured to
	ReturnIdleAfter = time.Second      // a lease unused for this long is returned
	FoldAfter       = 15 * time.Second // the longest between two renewals of a calm lease that is used
	CalmAhead       = 10 * time.Second // of recent traffic is what a calm lease covers
)

// The types of observations.
const (
	Tunnelled = "tunnel"
	Requested = "request"
	Refused   = "refused" // by the gateway
	Unmet     = "failed"  // by the target, or on the path to it
	// Reported is a target that the session's policy would refuse if it were enforced.
	Reported = "would_refuse"
	// AuthFailed is a wrong password of a user name that may be the session's.
	AuthFailed = "auth_failed"
)

// Observation is an event that the gateway observed, for the event log and, when
// Evidence is set, for the score of the session's exit.
type Observation struct {
	SessionID  string
	AgentID    string // who connected; empty: unknown
	Worker     string // whose connection it is; empty: the session's own
	Client     netip.Addr
	At         time.Time
	Type       string      // tunnel, request, refused, rotated ...
	Evidence   health.Type // empty: no evidence about the exit
	Host       string      // target host without port
	StatusCode int         // HTTP status that the client received from us or, on plain HTTP, from the target; 0: none
	Code       string      // our code when the gateway answered by itself
	Bytes      int64       // both directions
	Latency    time.Duration
	ExitIP     string
	Retryable  bool
	HowToFix   string
}
