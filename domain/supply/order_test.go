package supply_test

import (
	"errors"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/supply"
)

var sentAt = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// statuses are all there are.
var statuses = []supply.Status{supply.Planned, supply.Sent, supply.Confirmed, supply.Refused, supply.Unknown}

// orderAt is an order of a status, with what such an order has.
func orderAt(s supply.Status) supply.Order {
	o := supply.Order{ID: "ord_1", Status: s, PlannedAt: sentAt.Add(-time.Second), NextAt: sentAt.Add(time.Minute)}
	if s != supply.Planned {
		o.SentAt = sentAt
	}
	if s == supply.Unknown {
		o.Class, o.Reason, o.FrozenAt = supply.Ambiguous, "no answer came", sentAt.Add(supply.FreezeAfter)
	}
	return o
}

func TestEveryStatusByEveryTransition(t *testing.T) {
	now := sentAt.Add(time.Hour)
	transitions := map[string]func(o supply.Order) (supply.Order, error){
		"send": func(o supply.Order) (supply.Order, error) { return o.Send(supply.Snapshot{Refs: []string{"a"}}, now) },
		"confirm": func(o supply.Order) (supply.Order, error) {
			return o.Confirm(supply.Delivery{Ref: "r", State: supply.Live}, now)
		},
		"refuse": func(o supply.Order) (supply.Order, error) { return o.Refuse(supply.OutOfStock, "none left", now) },
		"doubt":  func(o supply.Order) (supply.Order, error) { return o.Doubt("no answer came", now) },
	}
	want := map[supply.Status]map[string]supply.Status{ // what is absent is refused
		supply.Planned:   {"send": supply.Sent, "refuse": supply.Refused},
		supply.Sent:      {"confirm": supply.Confirmed, "refuse": supply.Refused, "doubt": supply.Unknown},
		supply.Unknown:   {"confirm": supply.Confirmed, "refuse": supply.Refused, "doubt": supply.Unknown},
		supply.Confirmed: {},
		supply.Refused:   {},
	}
	for _, from := range statuses {
		for name, do := range transitions {
			before := orderAt(from)
			after, err := do(before)
			to, allowed := want[from][name]
			if !allowed {
				if !errors.Is(err, supply.ErrDecided) || after.Status != from || !after.NextAt.Equal(before.NextAt) || after.Ref != before.Ref {
					t.Errorf("%s, %s: %s %v", from, name, after.Status, err)
				}
				continue
			}
			if err != nil || after.Status != to {
				t.Errorf("%s, %s: %s %v, want %s", from, name, after.Status, err, to)
			}
			if before.Open() != true || after.Open() != (to == supply.Sent || to == supply.Unknown) {
				t.Errorf("%s, %s: open %v before, %v after", from, name, before.Open(), after.Open())
			}
			if decided := to == supply.Confirmed || to == supply.Refused; decided &&
				(!after.DecidedAt.Equal(now) || !after.NextAt.IsZero() || !after.FrozenAt.IsZero()) {
				t.Errorf("%s, %s: decided at %v, next at %v, frozen at %v", from, name, after.DecidedAt, after.NextAt, after.FrozenAt)
			}
		}
	}
	for _, s := range []supply.Status{supply.Confirmed, supply.Refused} {
		if orderAt(s).Open() {
			t.Errorf("%s is open", s)
		}
	}
}

func TestSentOrderIsGivenTheTimeOfACall(t *testing.T) {
	before := supply.Snapshot{Refs: []string{"a", "b"}, Funds: supply.Funds{Amount: domain.Dollar, Known: true}}
	o, err := orderAt(supply.Planned).Send(before, sentAt)
	if err != nil || !o.SentAt.Equal(sentAt) || !o.NextAt.Equal(sentAt.Add(supply.SendFor)) || len(o.Before.Refs) != 2 || o.Before.Funds != before.Funds {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestConfirmedOrderTakesTheDelivery(t *testing.T) {
	now, end := sentAt.Add(time.Minute), sentAt.Add(30*24*time.Hour)
	o := orderAt(supply.Unknown)
	o.Cost = domain.Dollar
	pending, err := o.Confirm(supply.Delivery{Ref: "r", State: supply.Pending, Cost: 2 * domain.Dollar}, now)
	if err != nil || pending.Ref != "r" || pending.State != supply.Pending || pending.Cost != 2*domain.Dollar || pending.Class != "" || pending.Reason != "" {
		t.Errorf("accepted: %+v, %v", pending, err)
	}
	if !pending.NextAt.Equal(now.Add(15 * time.Second)) {
		t.Errorf("a minute after it was sent it is read again at %v", pending.NextAt)
	}
	live := pending.Take(supply.Delivery{Ref: "another", State: supply.Live, ExpiresAt: end}, now.Add(time.Minute))
	if live.Ref != "r" || live.State != supply.Live || live.Cost != 2*domain.Dollar || !live.ExpiresAt.Equal(end) || live.Status != supply.Confirmed {
		t.Errorf("delivered: %+v", live)
	}
	silent := live.Take(supply.Delivery{Ref: "r", State: supply.Live}, now.Add(time.Hour))
	if silent.Cost != live.Cost || !silent.ExpiresAt.Equal(end) {
		t.Errorf("what a provider does not tell is forgotten: %+v", silent)
	}
}

func TestDoubtIsAskedAboutMoreAndMoreSeldom(t *testing.T) {
	for _, c := range []struct{ age, next time.Duration }{
		{0, 2 * time.Second}, {8 * time.Second, 2 * time.Second}, {time.Minute, 15 * time.Second}, {40 * time.Minute, 10 * time.Minute},
		{23*time.Hour + 59*time.Minute, 10 * time.Minute},
	} {
		now := sentAt.Add(c.age)
		o, err := orderAt(supply.Sent).Doubt("no answer came", now)
		if err != nil || o.Class != supply.Ambiguous || o.Reason != "no answer came" || !o.NextAt.Equal(now.Add(c.next)) || !o.FrozenAt.IsZero() {
			t.Errorf("%v old: %+v, %v", c.age, o, err)
		}
	}
	o, _ := orderAt(supply.Sent).Doubt("the first reason", sentAt)
	if o, _ = o.Doubt("", sentAt.Add(time.Minute)); o.Reason != "the first reason" {
		t.Errorf("the reason is %q", o.Reason)
	}
	day := sentAt.Add(supply.FreezeAfter)
	frozen, err := o.Doubt("", day)
	if err != nil || !frozen.FrozenAt.Equal(day) || !frozen.NextAt.IsZero() || frozen.Status != supply.Unknown {
		t.Errorf("after a day: %+v, %v", frozen, err)
	}
	if again, _ := frozen.Doubt("", day.Add(time.Hour)); !again.FrozenAt.Equal(day) {
		t.Errorf("frozen again at %v", again.FrozenAt)
	}
	if adopted, err := frozen.Confirm(supply.Delivery{Ref: "r", State: supply.Live}, day.Add(time.Hour)); err != nil || !adopted.FrozenAt.IsZero() {
		t.Errorf("the operator adopts it: %+v, %v", adopted, err)
	}
	if released, err := frozen.Refuse(supply.Temporary, "released", day.Add(time.Hour)); err != nil || !released.FrozenAt.IsZero() || released.Class != supply.Temporary {
		t.Errorf("the operator releases it: %+v, %v", released, err)
	}
}
