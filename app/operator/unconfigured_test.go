package operator_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"agentproxy/app/catalogs"
	"agentproxy/app/operator"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	. "agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// A provider that is renamed in the configuration leaves sessions that are paid for and get nothing, and sells their
// addresses again under its new name.
func TestAProviderThatIsGoneFromTheConfigurationStopsTheStart(t *testing.T) {
	t.Parallel()
	d := open(t)
	agent := d.RegisterFunded(50)
	var log bytes.Buffer
	configured := func(list ...ports.Provider) *operator.Unconfigured {
		c, err := catalogs.New(list, nil, strings.ToUpper)
		OK(t, err)
		return operator.NewUnconfigured(d.store, c, slog.New(slog.NewTextHandler(&log, nil)))
	}
	all, without := configured(d.Embedded, d.Seller), configured(d.Embedded, fake.NewProvider("remote2"))
	OK(t, without.Check(t.Context())) // nothing was sold
	v := d.Buy(agent, RemoteStatic)
	d.Buy(agent, Static)
	OK(t, all.Check(t.Context()))
	err := without.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), `1 live sessions`) || !strings.Contains(err.Error(), `"remote"`) {
		t.Errorf("the start is answered by %v", err)
	}
	missing, err := without.List(t.Context())
	OK(t, err)
	Equal(t, "missing", len(missing), 1)
	Equal(t, "of remote", missing["remote"], ports.Named{Sessions: 1})

	_, err = d.sessions().End(t.Context(), v.ID)
	OK(t, err)
	OK(t, without.Check(t.Context()))
	Equal(t, "the log", log.Len(), 0)
	// What is open at the seller cannot be ended without it, and is no reason not to serve the others.
	d.Seller.Next(fake.Provision, fake.LoseAnswer())
	lost, err := d.Create(agent, RemoteStatic)
	OK(t, err)
	OK(t, d.DB.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Claims().Add(ctx, []procurement.Claim{{Provider: "remote", Line: "l", OrderID: "ord_1", ClaimedAt: d.Clock.Now()}})
	}))
	_, err = d.sessions().End(t.Context(), lost.View.ID)
	OK(t, err)
	OK(t, without.Check(t.Context()))
	if text := log.String(); !strings.Contains(text, "provider=remote orders=1 claims=1") {
		t.Errorf("the log is %s", text)
	}
	OK(t, all.Check(t.Context()))
}
