package fulfilment_test

import (
	"context"
	"testing"

	"agentproxy/app/fulfilment"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

func TestDeliveriesAreResealed(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	s := w.Buy(w.RegisterFunded(100), apptest.RemoteStatic)
	opened := func() (d fulfilment.Delivered, err error) {
		var orders []procurement.Order
		apptest.OK(t, w.Store.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
			orders, err = tx.Orders().Of(ctx, s.ID)
			return err
		}))
		return w.Fulfilment.Open(orders[0])
	}
	want, err := opened()
	apptest.OK(t, err)
	w.ReplaceRoot(apptest.OtherRootSecret)
	if _, err := opened(); err == nil {
		t.Error("opened under another root")
	}
	w.ReplaceRoot(apptest.OtherRootSecret, apptest.RootSecret)
	n, err := w.Fulfilment.Reseal(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "resealed", n, 1)
	third := append(apptest.RootSecret[:0:0], "a-third-secret-that-never-sealed-anything"...)
	w.ReplaceRoot(third)
	if n, err := w.Fulfilment.Reseal(t.Context()); err == nil || n != 0 {
		t.Errorf("%d are resealed under a root that cannot open them, %v", n, err)
	}
	w.ReplaceRoot(apptest.OtherRootSecret)
	got, err := opened()
	apptest.OK(t, err)
	apptest.Equal(t, "addresses", len(got.IPs), len(want.IPs))
	apptest.Equal(t, "the password", got.IPs[0].Password, want.IPs[0].Password)
}
