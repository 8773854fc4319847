package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/app/reconcile"
	"agentproxy/domain/procurement"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// The seller's counters are compared with what is charged once a day, and a warning names
// the product where it has counted much more.
func TestTheSellersCounterIsComparedOnceADay(t *testing.T) {
	t.Parallel()
	b := open(t)
	agent := b.RegisterFunded(100)
	first, second := b.Buy(agent, apptest.Remote), b.Buy(agent, apptest.Remote)
	b.Buy(agent, apptest.RemoteStatic)
	b.UseBytes(first.ID, "lease", 150_000_000)
	used := func(id string, n int64) { b.Seller.Change(id, func(p *fake.Purchase) { p.Used = n }) }
	used(first.ID, 160_000_000)
	compare := func(want procurement.Counted) {
		t.Helper()
		apptest.OK(t, b.CountDue(t.Context()))
		last, err := b.Counted(t.Context())
		apptest.OK(t, err)
		if products := last["remote"].Products; len(products) != 1 || products[0] != want {
			t.Errorf("compared %+v, want %+v", products, want)
		}
	}
	compare(procurement.Counted{Product: apptest.Remote, Sessions: 2, Seller: 160_000_000, Charged: 150_000_000})
	apptest.Equal(t, "logged", b.text.String(), "")

	used(second.ID, 200_000_000)
	b.Clock.Advance(reconcile.Every - time.Second)
	compare(procurement.Counted{Product: apptest.Remote, Sessions: 2, Seller: 160_000_000, Charged: 150_000_000}) // not again on the day
	apptest.Equal(t, "read", b.Seller.Calls(fake.UsageOf), 2)
	b.Clock.Advance(time.Second)
	compare(procurement.Counted{Product: apptest.Remote, Sessions: 2, Seller: 360_000_000, Charged: 150_000_000})
	if text := b.text.String(); !strings.Contains(text, "counted_bytes=360000000") || !strings.Contains(text, "product="+apptest.Remote) {
		t.Errorf("logged: %s", text)
	}

	b.Clock.Advance(reconcile.Every)
	_, err := b.Sessions.Terminate(t.Context(), agent, second.ID)
	apptest.OK(t, err)
	compare(procurement.Counted{Product: apptest.Remote, Sessions: 1, Seller: 160_000_000, Charged: 150_000_000})
}

func TestASellerWithoutACounterIsAskedOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	agent := b.RegisterFunded(100)
	b.Buy(agent, apptest.Remote)
	b.Buy(agent, apptest.Remote)
	b.Seller.Always(fake.UsageOf, fake.Refuse(procurement.Unsupported))
	apptest.OK(t, b.CountDue(t.Context()))
	apptest.Equal(t, "asked", b.Seller.Calls(fake.UsageOf), 1)
}
