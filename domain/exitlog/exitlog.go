// Package exitlog holds who used which exit when: a record of each connection to a target, for
// the operator alone. It has no path, header, body or credential.
package exitlog

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"agentproxy/domain/egress"
)

// Connection is one connection to a target, or what was known of it at Seen.
type Connection struct {
	Replica string // that carried it
	Number  uint64 // of the replica's connections
	Agent   string
	Session string
	Worker  string
	Client  netip.AddrPort
	Host    string         // the name that was asked for; empty for an address
	Target  netip.AddrPort // the address is invalid if an upstream proxy resolved the name
	Exit    netip.AddrPort // the port is 0 where a seller chose it; the address is invalid if a seller shows none
	Seller  string         // whose proxy was used; empty: none
	Token   string         // what names the exit to the seller: a token, or the proxy's address
	Opened  time.Time
	Closed  time.Time // zero: it was open at Seen
	Seen    time.Time // when the record was made
	Bytes   int64     // both directions, of one that has ended
	End     End
}

// End is how a connection ended.
type End string

// The ends.
const (
	Finished  End = "finished"  // both sides were done, or one closed it
	Idle      End = "idle"      // nothing was moved for too long
	Reset     End = "reset"     // the target's side failed
	Over      End = "session"   // the session ended
	Exhausted End = "exhausted" // its traffic was used up
	Denied    End = "denied"    // a policy denied the target
	Stopped   End = "stopped"   // the gateway stopped
	Looped    End = "looped"    // it led back to the gateway
)

// CheckpointEvery is how often a connection that stays open is recorded again, so that one that was
// open at a time has a record near it.
const CheckpointEvery = 5 * time.Minute

// Margin is how long after a time its last record may be stored: a note, and the batch it waits for.
const Margin = CheckpointEvery + time.Minute

// Query asks who used an exit about a time. Its criteria narrow each other, and it needs one of Exit, Target,
// Client, Agent, Seller and Token: exits of sellers that show none are found by the others alone.
type Query struct {
	Exit   netip.Addr // invalid: any
	Port   uint16     // of Exit; 0: any
	At     time.Time
	Within time.Duration // how far the clocks may differ
	Target string        // host or address; empty: any, as in those below
	Client netip.Addr    // invalid: any
	Agent  string
	Seller string
	Token  string // what names an exit to its seller
}

// Asks reports whether q has a criterion beside the time.
func (q Query) Asks() bool {
	return q.Exit.IsValid() || q.Client.IsValid() || q.Target+q.Agent+q.Seller+q.Token != ""
}

// Stored returns between which times the records that may answer were stored.
func (q Query) Stored() (from, to time.Time) {
	return q.At.Add(-q.Within - Margin), q.At.Add(q.Within + Margin)
}

// concerns reports whether a connection meets every criterion, whenever it was.
func (q Query) concerns(c Connection) bool {
	return sameAddr(q.Exit, c.Exit) && (q.Port == 0 || q.Port == c.Exit.Port()) && sameAddr(q.Client, c.Client) &&
		(q.Agent == "" || q.Agent == c.Agent) && (q.Seller == "" || q.Seller == c.Seller) &&
		(q.Token == "" || strings.EqualFold(q.Token, c.Token)) && q.target(c)
}

// sameAddr reports whether an address is the one that is asked for, if one is.
func sameAddr(asked netip.Addr, known netip.AddrPort) bool {
	return !asked.IsValid() || known.Addr().IsValid() && egress.Unmap(asked) == egress.Unmap(known.Addr())
}

func (q Query) target(c Connection) bool {
	if q.Target == "" {
		return true
	}
	host := strings.ToLower(strings.TrimSuffix(q.Target, "."))
	if host == strings.ToLower(strings.TrimSuffix(c.Host, ".")) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && sameAddr(addr, c.Target)
}

// distance returns how far the time that is asked for is from a connection; 0 if it was open.
// One whose end is unknown may have been open until its next note.
func (q Query) distance(c Connection) time.Duration {
	last := c.Closed
	if last.IsZero() {
		last = c.Seen.Add(CheckpointEvery)
	}
	switch {
	case q.At.Before(c.Opened):
		return c.Opened.Sub(q.At)
	case q.At.After(last):
		return q.At.Sub(last)
	}
	return 0
}

// MaxFound bounds the connections that one answer collects: a program that asks for all of a day does not
// fill the memory.
const MaxFound = 100_000

// Answer collects the records that answer a query.
type Answer struct {
	query Query
	last  map[connectionID]Connection // what is known of each connection; at most MaxFound
	more  bool
}

type connectionID struct {
	replica string
	number  uint64
}

// NewAnswer returns an Answer without records.
func NewAnswer(q Query) *Answer { return &Answer{query: q, last: map[connectionID]Connection{}} }

// More reports whether more connections than MaxFound were added: the answer is not the whole one.
func (a *Answer) More() bool { return a.more }

// Add adds a record. Later ones of a connection replace earlier ones, in any order.
func (a *Answer) Add(c Connection) {
	if !a.query.concerns(c) {
		return
	}
	id := connectionID{c.Replica, c.Number}
	known, ok := a.last[id]
	if !ok && len(a.last) == MaxFound {
		a.more = true
		return
	}
	if !ok || known.Closed.IsZero() && (!c.Closed.IsZero() || c.Seen.After(known.Seen)) {
		a.last[id] = c
	}
}

// Connections returns those that may be the one that is asked for, the nearest first. If some
// were open at the very time, it returns those alone: a port is used again soon after.
func (a *Answer) Connections() []Connection {
	q := a.query
	var found []Connection
	within := q.Within
	for _, c := range a.last {
		if d := q.distance(c); d <= q.Within {
			found = append(found, c)
			if d == 0 {
				within = 0
			}
		}
	}
	found = slices.DeleteFunc(found, func(c Connection) bool { return q.distance(c) > within })
	slices.SortFunc(found, func(a, b Connection) int {
		return cmp.Or(cmp.Compare(q.distance(a), q.distance(b)), b.Opened.Compare(a.Opened),
			cmp.Compare(a.Replica, b.Replica), cmp.Compare(a.Number, b.Number))
	})
	return found
}

// Lookup is a query that was made, with who made it and why.
type Lookup struct {
	ID       string
	At       time.Time
	Operator string
	Reason   string
	Query    Query
	Found    int
}

// Hold keeps days of the log from deletion.
type Hold struct {
	ID        string
	From, To  time.Time // UTC days; To is exclusive
	Operator  string
	Reason    string
	CreatedAt time.Time
	EndedAt   time.Time // zero: it holds
}
