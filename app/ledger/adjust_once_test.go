package ledger_test

import (
	"strings"
	"sync"
	"testing"

	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/test/apptest"
)

func TestAnAdjustmentWithAReferenceIsBookedOnce(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent, other := w.Register(), w.Register()
	adjust := func(agent, amount, ref string) (billing.Entry, error) {
		return w.Wallet.AdjustOnce(t.Context(), agent, apptest.Dollars(amount), "goodwill", ref)
	}
	first, err := adjust(agent, "5", "ticket 7")
	apptest.OK(t, err)
	before := w.Dump()
	again, err := adjust(agent, "5", "ticket 7")
	apptest.OK(t, err)
	apptest.Equal(t, "the second answer", again, first)
	for _, c := range []struct{ agent, amount, ref string }{
		{agent, "6", "ticket 7"}, {agent, "-5", "ticket 7"}, {other, "5", "ticket 7"},
		{agent, "5", strings.Repeat("x", ledger.MaxAdjustRef+1)},
	} {
		_, err := adjust(c.agent, c.amount, c.ref)
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
	for _, amount := range []string{"1000000.000001", "-1000000.000001", "0"} { // more would overflow the reports
		_, err := adjust(agent, amount, "")
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
	apptest.Equal(t, "the database", w.Dump(), before)
	// A correction that took all of the balance is found when it is repeated.
	poor := w.Register()
	taken, err := adjust(poor, "-"+w.Balance(poor).String(), "ticket 9")
	apptest.OK(t, err)
	again, err = adjust(poor, taken.Amount().String(), "ticket 9")
	apptest.OK(t, err)
	apptest.Equal(t, "the answer to a repeated deduction", again, taken)
	// An id of another entry is no reference of it.
	if _, err = adjust(agent, "1", first.ID); err != nil {
		t.Error(err)
	}
	apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("16"))

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := adjust(agent, "1", "ticket 8"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	apptest.Equal(t, "the balance after eight calls at once", w.Balance(agent), apptest.Dollars("17"))
}
