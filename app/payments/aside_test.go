package payments_test

import (
	"testing"
	"time"

	"agentproxy/test/apptest"
)

// One agent whose transfer cannot be booked holds up no other, however long: it is set aside, and booked once it can be.
func TestATransferThatCannotBeBookedIsSetAside(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	sick, o := b.payer("10")
	other, p := b.payer("20")
	b.watch()
	b.Exec(`UPDATE wallets SET budget_thresholds = 'x' WHERE agent_id = ?`, sick)
	k := b.pay(o.Address, "10")
	b.settle()
	for range 2 { // what a moment explains
		if err := b.payments.Watch(t.Context()); err == nil {
			t.Error("a scan that failed is no error")
		}
		b.mine(1)
	}
	b.watch()
	for range 3 {
		b.mine(2100)
		b.watch()
	}
	b.pay(p.Address, "20")
	b.settle()
	b.watch()
	b.expectCredited(other, "20")
	list, total, err := b.payments.Aside(t.Context(), 10)
	apptest.OK(t, err)
	if total != 1 || len(list) != 1 || list[0].Key != k || list[0].AgentID != sick || list[0].Reason == "" || !b.logged("set aside") {
		t.Fatalf("set aside are %d: %+v", total, list)
	}
	status, err := b.payments.Status(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "the alarm", status.Aside, 1)

	b.Exec(`UPDATE wallets SET budget_thresholds = '' WHERE agent_id = ?`, sick)
	b.advance(time.Hour)
	b.watch()
	b.expectCredited(sick, "10")
	_, total, err = b.payments.Aside(t.Context(), 10)
	apptest.OK(t, err)
	apptest.Equal(t, "still set aside", total, 0)
	b.expectAllCredited()
	faults, _, err := b.DB.Verify(t.Context())
	if len(faults) > 0 || err != nil {
		t.Errorf("verify finds %v, %v", faults, err)
	}
}
