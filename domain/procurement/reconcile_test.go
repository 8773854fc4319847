package procurement_test

import (
	"testing"
	"time"

	"agentproxy/domain/procurement"
)

func TestReconcile(t *testing.T) {
	now := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	entry := procurement.Delivery{Ref: "r1", State: procurement.Live}
	labelled := procurement.Delivery{Ref: "r1", Label: "ord_1", State: procurement.Live}
	order := func(status procurement.Status, ref string) procurement.Order {
		return procurement.Order{ID: "ord_1", Kind: procurement.Purchase, Status: status, Ref: ref}
	}
	closed := order(procurement.Confirmed, "r1")
	closed.ClosedAt = now
	renewal := order(procurement.Confirmed, "r1")
	renewal.Kind = procurement.Renewal
	for name, c := range map[string]struct {
		entry procurement.Delivery
		claim procurement.Match
		want  procurement.Disposition
	}{
		"it is unknown":                         {entry, procurement.Match{Cancels: true}, procurement.Orphan},
		"it has the label of another service":   {labelled, procurement.Match{OpenOrder: true, Cancels: true}, procurement.Orphan},
		"it may be what is on its way":          {entry, procurement.Match{OpenOrder: true}, procurement.Undecided},
		"it is not delivered yet":               {procurement.Delivery{Ref: "r1", State: procurement.Pending}, procurement.Match{}, procurement.Undecided},
		"a live session has its address":        {entry, procurement.Match{Owned: true}, procurement.Kept},
		"it has ended":                          {procurement.Delivery{State: procurement.Gone}, procurement.Match{}, procurement.Kept},
		"it is used":                            {labelled, procurement.Match{Order: order(procurement.Confirmed, "r1"), Cancels: true}, procurement.Kept},
		"it is used though its order is closed": {entry, procurement.Match{Order: closed, Cancels: true}, procurement.Kept},
		"it is about to be given up":            {entry, procurement.Match{Order: order(procurement.Confirmed, "r1"), Over: true, Cancels: true}, procurement.Kept},
		"it was given up and is back":           {entry, procurement.Match{Order: closed, Over: true, Cancels: true}, procurement.Surplus},
		"it runs to its end":                    {entry, procurement.Match{Order: closed, Over: true}, procurement.Kept},
		"its order was refused":                 {labelled, procurement.Match{Order: order(procurement.Refused, ""), Over: true, Cancels: true}, procurement.Surplus},
		"its order was refused, and cannot end": {labelled, procurement.Match{Order: order(procurement.Refused, "")}, procurement.Surplus},
		"its order has another ref":             {labelled, procurement.Match{Order: order(procurement.Confirmed, "r2")}, procurement.Surplus},
		"its order is unknown":                  {labelled, procurement.Match{Order: order(procurement.Unknown, "")}, procurement.Lost},
		"its order is being sent":               {labelled, procurement.Match{Order: order(procurement.Sent, "")}, procurement.Undecided},
		"its order is planned":                  {labelled, procurement.Match{Order: order(procurement.Planned, "")}, procurement.Undecided},
		"a renewal has its label":               {labelled, procurement.Match{Order: renewal, Over: true, Cancels: true}, procurement.Orphan},
	} {
		if got := procurement.Reconcile(c.entry, c.claim); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
