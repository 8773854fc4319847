// Package replacement holds the rules by which one address of a static session is replaced: on which ground it is
// free, what it costs else, and what becomes of it.
package replacement

import (
	"net/netip"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// IDPrefix begins the ids of replacements.
const IDPrefix = "rep_"

// The times of replacements.
const (
	FreeFor = 24 * time.Hour      // from the activation of a session: its addresses are replaced for nothing on a ground
	Again   = 30 * 24 * time.Hour // until an address is replaced once more without a ground
	// After a refusal its seller is not asked about an address again for that long: each question is a call to it.
	FreeAfterRefusal    = time.Hour
	OfferedAfterRefusal = 24 * time.Hour
	// NotSoldAgain is how long an address that an agent gave back is not sold to it.
	NotSoldAgain = 30 * 24 * time.Hour
)

// Ground is why an address is replaced.
type Ground string

// Contradicted: it was measured in another country than the one sold. Unreachable: checks failed. Both are free.
// Offered: its source replaces addresses, at a price that may be 0.
const (
	Contradicted Ground = "contradicted"
	Unreachable  Ground = "unreachable"
	Offered      Ground = "offered"
)

// Grounds lists every ground.
var Grounds = []Ground{Contradicted, Unreachable, Offered}

// Free reports whether a replacement on the ground costs nothing, once an address.
func (g Ground) Free() bool { return g == Contradicted || g == Unreachable }

// Status is how far a replacement has come.
type Status string

// pending → done | refused, or at once: done, ended. The last three never change again.
const (
	Pending Status = "pending" // its seller was asked, or is about to be
	Done    Status = "done"    // the session has another address
	Ended   Status = "ended"   // there was no other address: its unused days were given back
	Refused Status = "refused" // its seller did not replace it; the address stays
)

// Statuses lists every status.
var Statuses = []Status{Pending, Done, Ended, Refused}

// ErrRefused refuses a replacement without a ground.
var ErrRefused = &domain.Error{Kind: domain.Conflict, Code: "REPLACEMENT_REFUSED",
	Message: "nothing gives this address a right to be replaced; details.grounds has what would"}

// Replacement is one address of a static session that was given back, or is about to be.
type Replacement struct {
	ID        string
	AgentID   string
	SessionID string
	Provider  string
	Country   string // that the address was sold as
	Index     int    // of the address in the session
	Old       netip.Addr
	New       netip.Addr // invalid unless it is done
	Fault     procurement.Fault
	Ground    Ground
	Status    Status
	OrderID   string       // at a seller
	Fee       domain.Money // that was charged for it
	Refund    domain.Money // of an address that ended
	// Kept is what of the session's charges pays for no day of an address that it has: what an address that ended
	// had cost, less the refund, or the fee.
	Kept      domain.Money
	At        time.Time
	DecidedAt time.Time // zero while pending
	EndsAt    time.Time // of the session, when the address ended; zero else
}

// Count sums the replacements of one source, of addresses sold as being in one country.
type Count struct {
	Source, Country string
	Replaced        int          // with another address
	Ended           int          // without one
	Fees            domain.Money // that agents paid
	Refunds         domain.Money // that agents got
}

// Decide returns the replacement after its seller was asked: with another address it is done, without it refused.
func (r Replacement) Decide(by netip.Addr, now time.Time) (Replacement, error) {
	if r.Status != Pending {
		return r, procurement.ErrDecided.Msgf("the replacement is %s", r.Status)
	}
	r.Status, r.New, r.DecidedAt = Refused, by, now
	if by.IsValid() {
		r.Status = Done
	}
	return r, nil
}

// Case is what is known of an address that is to be replaced.
type Case struct {
	Fault       procurement.Fault
	ActivatedAt time.Time      // of the session
	Before      []Replacement  // of the same address and those that it came in place of, within the session
	Measured    *exit.Measured // nil: it was not measured
	Failures    int            // checks that failed one after the other
	// Price is what its source takes for it; nil: it replaces nothing without a ground.
	Price *domain.Money
}

// Ground returns on which ground the address is replaced, a free one first, or ErrRefused with what would be one.
func (c Case) Ground(now time.Time) (Ground, error) {
	var last, refused time.Time
	used := false
	for _, r := range c.Before {
		if r.Status == Pending {
			return "", session.ErrNotReady.Msgf("this address is being replaced; read the session until its ip_list has another")
		}
		if r.Status == Refused {
			refused = r.DecidedAt
			continue
		}
		used = used || r.Ground.Free()
		if r.At.After(last) {
			last = r.At
		}
	}
	until := c.ActivatedAt.Add(FreeFor)
	if !used && now.Before(until) && now.Sub(refused) >= FreeAfterRefusal {
		if m := c.Measured; m != nil && m.Country != "" && m.Declared != "" && m.Country != m.Declared {
			return Contradicted, nil
		}
		if c.Failures >= exit.UnreachableAfter {
			return Unreachable, nil
		}
	}
	again := later(last.Add(Again), refused.Add(OfferedAfterRefusal))
	if c.Price != nil && !now.Before(again) {
		return Offered, nil
	}
	if used || !now.Before(until) {
		until = time.Time{}
	}
	return "", c.refusal(until, refused, again)
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// refusal returns ErrRefused with the grounds that there could be: free ones until a time, unless that is zero, and the
// source's own offer again at one.
func (c Case) refusal(until, refused, again time.Time) error {
	grounds := []string{}
	if !until.IsZero() {
		grounds = append(grounds, "contradicted: its country was measured and is not the one sold, by "+stamp(until),
			"unreachable: 3 checks of it one after the other fail, a minute apart, by "+stamp(until)+
				"; POST …/check with ip makes one")
	}
	if c.Price != nil {
		grounds = append(grounds, "offered: its source replaces it again at "+stamp(again))
	}
	if !refused.IsZero() && !until.IsZero() {
		grounds = append(grounds, "its seller refused; a free ground counts again at "+stamp(refused.Add(FreeAfterRefusal)))
	}
	e := ErrRefused.With("grounds", grounds).With("failed_checks", c.Failures).With("measured_country", nil)
	if m := c.Measured; m != nil && m.Country != "" {
		e = e.With("measured_country", m.Country)
	}
	return e
}

// stamp writes a time as the API does.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
