package procurement_test

import (
	"errors"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
)

var sentAt = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// statuses are all there are.
var statuses = []procurement.Status{procurement.Planned, procurement.Sent, procurement.Confirmed, procurement.Refused, procurement.Unknown}

// orderAt is an order of a status, with what such an order has.
func orderAt(s procurement.Status) procurement.Order {
	o := procurement.Order{ID: "ord_1", Status: s, PlannedAt: sentAt.Add(-time.Second), NextAt: sentAt.Add(time.Minute)}
	if s != procurement.Planned {
		o.SentAt = sentAt
	}
	if s == procurement.Unknown {
		o.Class, o.Reason, o.FrozenAt = procurement.Ambiguous, "no answer came", sentAt.Add(procurement.FreezeAfter)
	}
	return o
}

func TestEveryStatusByEveryTransition(t *testing.T) {
	now := sentAt.Add(time.Hour)
	transitions := map[string]func(o procurement.Order) (procurement.Order, error){
		"send": func(o procurement.Order) (procurement.Order, error) {
			return o.Send(procurement.Snapshot{Refs: []string{"a"}}, now)
		},
		"confirm": func(o procurement.Order) (procurement.Order, error) {
			return o.Confirm(procurement.Delivery{Ref: "r", State: procurement.Live}, now)
		},
		"refuse": func(o procurement.Order) (procurement.Order, error) {
			return o.Refuse(procurement.OutOfStock, "none left", now)
		},
		"doubt": func(o procurement.Order) (procurement.Order, error) { return o.MarkUnknown("no answer came", now) },
	}
	want := map[procurement.Status]map[string]procurement.Status{ // what is absent is refused
		procurement.Planned:   {"send": procurement.Sent, "refuse": procurement.Refused},
		procurement.Sent:      {"confirm": procurement.Confirmed, "refuse": procurement.Refused, "doubt": procurement.Unknown},
		procurement.Unknown:   {"confirm": procurement.Confirmed, "refuse": procurement.Refused, "doubt": procurement.Unknown},
		procurement.Confirmed: {},
		procurement.Refused:   {},
	}
	for _, from := range statuses {
		for name, do := range transitions {
			before := orderAt(from)
			after, err := do(before)
			to, allowed := want[from][name]
			if !allowed {
				if !errors.Is(err, procurement.ErrDecided) || after.Status != from || !after.NextAt.Equal(before.NextAt) || after.Ref != before.Ref {
					t.Errorf("%s, %s: %s %v", from, name, after.Status, err)
				}
				continue
			}
			if err != nil || after.Status != to {
				t.Errorf("%s, %s: %s %v, want %s", from, name, after.Status, err, to)
			}
			if before.Open() != true || after.Open() != (to == procurement.Sent || to == procurement.Unknown) {
				t.Errorf("%s, %s: open %v before, %v after", from, name, before.Open(), after.Open())
			}
			if decided := to == procurement.Confirmed || to == procurement.Refused; decided &&
				(!after.DecidedAt.Equal(now) || !after.NextAt.IsZero() || !after.FrozenAt.IsZero()) {
				t.Errorf("%s, %s: decided at %v, next at %v, frozen at %v", from, name, after.DecidedAt, after.NextAt, after.FrozenAt)
			}
		}
	}
	for _, s := range []procurement.Status{procurement.Confirmed, procurement.Refused} {
		if orderAt(s).Open() {
			t.Errorf("%s is open", s)
		}
	}
}

func TestSentOrderIsGivenTheTimeOfACall(t *testing.T) {
	before := procurement.Snapshot{Refs: []string{"a", "b"}, Funds: procurement.ProviderBalance{Amount: domain.Dollar, Known: true}}
	o, err := orderAt(procurement.Planned).Send(before, sentAt)
	if err != nil || !o.SentAt.Equal(sentAt) || !o.NextAt.Equal(sentAt.Add(procurement.SendTimeout)) || len(o.Before.Refs) != 2 || o.Before.Funds != before.Funds {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestConfirmedOrderTakesTheDelivery(t *testing.T) {
	now, end := sentAt.Add(time.Minute), sentAt.Add(30*24*time.Hour)
	o := orderAt(procurement.Unknown)
	o.Cost = domain.Dollar
	pending, err := o.Confirm(procurement.Delivery{Ref: "r", State: procurement.Pending, Cost: 2 * domain.Dollar}, now)
	if err != nil || pending.Ref != "r" || pending.State != procurement.Pending || pending.Cost != 2*domain.Dollar || pending.Class != "" || pending.Reason != "" {
		t.Errorf("accepted: %+v, %v", pending, err)
	}
	if !pending.NextAt.Equal(now.Add(15 * time.Second)) {
		t.Errorf("a minute after it was sent it is read again at %v", pending.NextAt)
	}
	live := pending.Record(procurement.Delivery{Ref: "another", State: procurement.Live, ExpiresAt: end}, now.Add(time.Minute))
	if live.Ref != "r" || live.State != procurement.Live || live.Cost != 2*domain.Dollar || !live.ExpiresAt.Equal(end) || live.Status != procurement.Confirmed {
		t.Errorf("delivered: %+v", live)
	}
	silent := live.Record(procurement.Delivery{Ref: "r", State: procurement.Live}, now.Add(time.Hour))
	if silent.Cost != live.Cost || !silent.ExpiresAt.Equal(end) {
		t.Errorf("what a provider does not report is lost: %+v", silent)
	}
}

func TestDoubtIsAskedAboutMoreAndMoreSeldom(t *testing.T) {
	for _, c := range []struct{ age, next time.Duration }{
		{0, 2 * time.Second}, {8 * time.Second, 2 * time.Second}, {time.Minute, 15 * time.Second}, {40 * time.Minute, 10 * time.Minute},
		{23*time.Hour + 59*time.Minute, 10 * time.Minute},
	} {
		now := sentAt.Add(c.age)
		o, err := orderAt(procurement.Sent).MarkUnknown("no answer came", now)
		if err != nil || o.Class != procurement.Ambiguous || o.Reason != "no answer came" || !o.NextAt.Equal(now.Add(c.next)) || !o.FrozenAt.IsZero() {
			t.Errorf("%v old: %+v, %v", c.age, o, err)
		}
	}
	o, _ := orderAt(procurement.Sent).MarkUnknown("the first reason", sentAt)
	if o, _ = o.MarkUnknown("", sentAt.Add(time.Minute)); o.Reason != "the first reason" {
		t.Errorf("the reason is %q", o.Reason)
	}
	day := sentAt.Add(procurement.FreezeAfter)
	frozen, err := o.MarkUnknown("", day)
	if err != nil || !frozen.FrozenAt.Equal(day) || !frozen.NextAt.IsZero() || frozen.Status != procurement.Unknown {
		t.Errorf("after a day: %+v, %v", frozen, err)
	}
	if again, _ := frozen.MarkUnknown("", day.Add(time.Hour)); !again.FrozenAt.Equal(day) {
		t.Errorf("frozen again at %v", again.FrozenAt)
	}
	if adopted, err := frozen.Confirm(procurement.Delivery{Ref: "r", State: procurement.Live}, day.Add(time.Hour)); err != nil || !adopted.FrozenAt.IsZero() {
		t.Errorf("the operator adopts it: %+v, %v", adopted, err)
	}
	if released, err := frozen.Refuse(procurement.Temporary, "released", day.Add(time.Hour)); err != nil || !released.FrozenAt.IsZero() || released.Class != procurement.Temporary {
		t.Errorf("the operator releases it: %+v, %v", released, err)
	}
}
