package ordering_test

import (
	"context"
	"testing"

	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// A session that cannot be delivered gives its money back, unless something may
// have been bought for it.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	for product, want := range map[string]session.Status{apptest.LocalAsync: session.Failed, apptest.RemoteAsync: session.Creating} {
		w := apptest.New(t)
		agent := w.Register()
		v := w.Buy(agent, product)
		apptest.OK(t, w.Driver.AbandonCreation(context.Background(), v.ID))
		got := w.Read(agent, v.ID)
		apptest.Equal(t, product, got.Status, want)
		if want == session.Failed && (w.Balance(agent) != apptest.Dollars("10") || got.Failure.Code != ports.ErrProvider.Code) {
			t.Errorf("the balance is %s, the failure %+v", w.Balance(agent), got.Failure)
		}
		apptest.OK(t, w.RunOrders())
		if want == session.Creating {
			apptest.Equal(t, product, w.Read(agent, v.ID).Status, session.Active)
		}
		apptest.OK(t, w.Driver.AbandonCreation(context.Background(), v.ID)) // later: nothing
	}
}
