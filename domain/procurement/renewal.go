package procurement

import (
	"net/netip"
	"strconv"
	"time"

	"agentproxy/domain/session"
)

// RenewalSettleFor is how long a renewal may take to appear at a provider:
// addresses that end as before after that were not renewed.
const RenewalSettleFor = 15 * time.Minute

// Renews reports whether the order extends what another one bought.
func (o Order) Renews() bool { return o.Kind == Renewal }

// Renewing reports whether the order is a renewal whose outcome is still to come.
func (o Order) Renewing() bool { return o.Renews() && o.Open() }

// Hold is how the ledger lists what a session holds for an order.
type Hold struct {
	Ref   string    // distinguishes it from the others of the session
	Title string    // of what is paid for
	At    time.Time // when it was held, and on which day's budget
}

// Hold returns how what a session holds for the order is listed.
func (o Order) Hold(s session.Session) Hold {
	if o.Renews() {
		return Hold{":" + o.ID, "renewal of " + s.ProductNo, o.PlannedAt}
	}
	return Hold{"", s.ProductNo, s.CreatedAt}
}

// Ends returns when each address of the delivery ends, to the second.
func (d Delivery) Ends() map[netip.Addr]time.Time {
	ends := make(map[netip.Addr]time.Time, len(d.IPs))
	for _, ip := range d.IPs {
		at := ip.ExpiresAt
		if at.IsZero() {
			at = d.ExpiresAt
		}
		ends[ip.Addr] = at.UTC().Truncate(time.Second)
	}
	return ends
}

// LastEnd returns when the last of a renewal's addresses ended before it. What is
// gone after that was not renewed; before it, the provider may have been paid.
func (s Snapshot) LastEnd() (last time.Time) {
	for _, end := range s.Ends {
		if end.After(last) {
			last = end
		}
	}
	return last
}

// CheckRenewed returns the earliest end of the addresses of a renewal of that
// many. It returns an *Error unless all of them are renewed: Ambiguous if some
// are or may be, else the class of a refusal.
func CheckRenewed(list []Renewed, quantity int) (end time.Time, err error) {
	renewed, class, reason := 0, Class(""), ""
	for _, r := range list {
		if r.Err == nil {
			renewed++
			if end.IsZero() || r.ExpiresAt.Before(end) {
				end = r.ExpiresAt
			}
			continue
		}
		if class != Ambiguous {
			class, reason = ClassOf(r.Err), ReasonOf(r.Err)
		}
	}
	switch {
	case renewed == quantity:
		return end, nil
	case renewed == 0 && class != Ambiguous && class != "":
		return end, Refuse(class, reason)
	}
	return end, Refuse(Ambiguous, progress(renewed, quantity)+": "+reason)
}

// DecideRenewal weighs the evidence about an unknown renewal, of which d is the
// order as the provider has it now. Adopt needs that every address ends later than
// before, by at least half of the days that were ordered. Absent needs that each ends
// as before, that RenewalSettleFor is over and that no money is missing. In all other
// cases the operator decides. An address that the provider exchanged meanwhile proves
// nothing. The reason is for the operator.
func DecideRenewal(o Order, d Delivery, e Evidence, now time.Time) (v Verdict, reason string) {
	renewed, same, known := 0, 0, 0
	enough := time.Duration(o.Intent.Days) * session.Day / 2
	for addr, at := range d.Ends() {
		before, ok := o.Before.Ends[addr]
		if !ok {
			continue
		}
		known++
		switch added := at.Sub(before); {
		case added == 0:
			same++
		case added >= enough:
			renewed++
		}
	}
	settled := now.Sub(o.SentAt) >= RenewalSettleFor
	switch {
	case renewed > 0 && renewed == known:
		return Adopt, ""
	case same > 0 && same == known && settled && d.State == Live && !o.missesMoney(e):
		return Absent, "the addresses end as before"
	}
	return Wait, progress(renewed, known)
}

func progress(n, of int) string {
	return strconv.Itoa(n) + " of " + strconv.Itoa(of) + " addresses are renewed"
}

// missesMoney reports whether the provider has less of the operator's money than
// before the order and what other orders cost since.
func (o Order) missesMoney(e Evidence) bool {
	return o.Before.Funds.Known && e.Funds.Known && e.Funds.Amount+e.Spent < o.Before.Funds.Amount
}
