package app_test

import (
	"strings"
	"sync"
	"testing"

	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/billing"
)

func TestAnAdjustmentWithAReferenceIsBookedOnce(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent, other := w.register(), w.register()
	adjust := func(agent, amount, ref string) (billing.Entry, error) {
		return w.wallet.AdjustOnce(t.Context(), agent, dollars(amount), "goodwill", ref)
	}
	first, err := adjust(agent, "5", "ticket 7")
	ok(t, err)
	before := w.dump()
	again, err := adjust(agent, "5", "ticket 7")
	ok(t, err)
	same(t, "the second answer", again, first)
	for _, c := range []struct{ agent, amount, ref string }{
		{agent, "6", "ticket 7"}, {agent, "-5", "ticket 7"}, {other, "5", "ticket 7"},
		{agent, "5", strings.Repeat("x", ledger.MaxAdjustRef+1)},
	} {
		_, err := adjust(c.agent, c.amount, c.ref)
		refused(t, err, domain.ErrInvalid)
	}
	same(t, "the database", w.dump(), before)
	// An id of another entry is no reference of it.
	if _, err = adjust(agent, "1", first.ID); err != nil {
		t.Error(err)
	}
	same(t, "the balance", w.balance(agent), dollars("16"))

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := adjust(agent, "1", "ticket 8"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	same(t, "the balance after eight calls at once", w.balance(agent), dollars("17"))
}
