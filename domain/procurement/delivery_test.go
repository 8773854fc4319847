package procurement_test

import (
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

func TestHoldIsWhatItsSessionHoldsForAnOrder(t *testing.T) {
	s := session.Session{ProductNo: "static-de", CreatedAt: sentAt}
	o := procurement.Order{ID: "ord_1", Kind: procurement.Purchase, Status: procurement.Sent, PlannedAt: sentAt.Add(time.Hour)}
	if h := o.Hold(s); h != (procurement.Hold{Title: "static-de", At: sentAt}) || o.Renews() || o.Renewing() || o.Closable() {
		t.Errorf("a purchase that was sent: %+v", h)
	}
	if o.Status = procurement.Confirmed; !o.Closable() {
		t.Error("a confirmed purchase is not closable")
	}
	if o.ClosedAt = sentAt; o.Closable() {
		t.Error("a closed purchase is closable")
	}
	o.Kind, o.ClosedAt = procurement.Renewal, time.Time{}
	want := procurement.Hold{Ref: ":ord_1", Title: "renewal of static-de", At: sentAt.Add(time.Hour)}
	if h := o.Hold(s); h != want || !o.Renews() || o.Renewing() || o.Closable() {
		t.Errorf("a confirmed renewal: %+v", h)
	}
	if o.Status = procurement.Unknown; !o.Renewing() {
		t.Error("a renewal of unknown outcome is not renewing")
	}
}

func TestAddressesComeOneAfterTheOther(t *testing.T) {
	o := procurement.Order{SentAt: sentAt, Intent: procurement.Intent{Type: session.Static, Quantity: 2}}
	one := procurement.Delivery{State: procurement.Live, IPs: make([]procurement.IP, 1)}
	both := procurement.Delivery{State: procurement.Live, IPs: make([]procurement.IP, 2)}
	late := sentAt.Add(10 * time.Minute)
	if !o.Incomplete(one, late.Add(-1)) || o.Incomplete(both, late.Add(-1)) || o.Incomplete(one, late) {
		t.Error("an order waits ten minutes for the addresses that are missing, and no longer")
	}
	if o.Intent.Type = session.Dynamic; o.Incomplete(one, sentAt) {
		t.Error("a dynamic session has no addresses to wait for")
	}
}

func TestAnUndeliveredOrderIsFrozenOnce(t *testing.T) {
	o := procurement.Order{SentAt: sentAt, LostAt: sentAt}
	pending := procurement.Delivery{State: procurement.Pending}
	o, frozen := o.Await(pending, sentAt.Add(procurement.FreezeAfter-1))
	if frozen || !o.LostAt.IsZero() || o.NextAt.IsZero() {
		t.Errorf("frozen early, or still missing: %+v", o)
	}
	day := sentAt.Add(procurement.FreezeAfter)
	if o, frozen = o.Await(pending, day); !frozen || !o.FrozenAt.Equal(day) {
		t.Errorf("not frozen after a day: %+v", o)
	}
	if o, frozen = o.Await(pending, day.Add(time.Hour)); frozen || !o.FrozenAt.Equal(day) {
		t.Errorf("frozen again: %+v", o)
	}
	if o, frozen = o.Await(procurement.Delivery{State: procurement.Live}, day); frozen || !o.FrozenAt.IsZero() {
		t.Errorf("frozen though it is delivered: %+v", o)
	}
}
