package reconcile_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/app/reconcile"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// books is a world with the reconciliation of its providers.
type books struct {
	*apptest.World
	*reconcile.Service
	calls map[string]int
	text  bytes.Buffer
}

func open(t *testing.T) *books {
	t.Helper()
	b := &books{World: apptest.New(t), calls: map[string]int{}}
	count := func(provider, operation string, result procurement.Class) {
		b.calls[strings.TrimSpace(provider+" "+operation+" "+string(result))]++
	}
	b.Service = reconcile.New(b.Store, b.Clock, b.Catalog, b.Desk, count, slog.New(slog.NewTextHandler(&b.text, nil)))
	return b
}

// run reconciles the seller and returns its report.
func (b *books) run() reconcile.Report {
	b.T.Helper()
	reports, err := b.Run(context.Background(), "remote")
	apptest.OK(b.T, err)
	if len(reports) != 1 || reports[0].Err != nil {
		b.T.Fatalf("the reports are %+v", reports)
	}
	return reports[0]
}

// found returns the findings, one a line.
func found(r reconcile.Report) string {
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", f.Ref, f.Disposition, f.Outcome, f.OrderID))
	}
	return strings.Join(lines, "\n")
}

func (b *books) purchase(id string) procurement.Order {
	b.T.Helper()
	var orders []procurement.Order
	apptest.OK(b.T, b.Store.View(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		orders, err = tx.Orders().Of(ctx, id)
		return err
	}))
	return orders[0]
}

// late buys a session whose order the seller lists so late that it is refused.
func (b *books) late(agent string) (id, order string) {
	b.T.Helper()
	b.Seller.Next(fake.Provision, fake.LoseAnswer())
	b.Seller.Always(fake.Find, fake.Step{})
	v := b.Buy(agent, apptest.RemoteStatic)
	b.Seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	b.RunMinutes(10)
	o := b.purchase(v.ID)
	apptest.Equal(b.T, "the late order", o.Status, procurement.Refused)
	b.Seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = false })
	return v.ID, o.ID
}

// What is used, and what no order is known for, is left as it is.
func TestWhatIsUsedIsKept(t *testing.T) {
	t.Parallel()
	b := open(t)
	agent := b.RegisterFunded(100)
	b.Buy(agent, apptest.RemoteStatic)
	b.Buy(agent, apptest.Remote)
	_, err := b.Seller.Order(t.Context(), procurement.Intent{Key: "by hand", Type: session.Static, Quantity: 1, Days: 30})
	apptest.OK(t, err)
	r := b.run()
	apptest.Equal(t, "found", found(r), "ref3 orphan left ")
	apptest.Equal(t, "listed", r.Listed, 3)
	apptest.Equal(t, "kept", r.Kept, 2)
	apptest.Equal(t, "orphans", r.Orphans(), 1)
	apptest.Equal(t, "given up at the seller", b.Seller.Calls(fake.Release), 0)
	last, err := b.Last(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "stored", last["remote"], ports.Reconciliation{Provider: "remote", At: b.Clock.Now(), Listed: 3, Orphans: 1})
	b.Clock.Advance(reconcile.Every)
	apptest.Equal(t, "logged for the operator who reads the report", b.text.String(), "")
	apptest.OK(t, b.RunDue(t.Context()))
	if !strings.Contains(b.text.String(), "orphans=1") {
		t.Errorf("logged: %s", b.text.String())
	}
	apptest.Equal(t, "calls", strings.Join(slices.Sorted(maps.Keys(b.calls)), ", "), "remote list")
}

// An order that the seller lists after it was refused is cancelled there, and its money
// stays where it is.
func TestWhatWasRefusedAndCameLaterIsCancelled(t *testing.T) {
	t.Parallel()
	b := open(t)
	agent := b.RegisterFunded(100)
	before := b.Balance(agent)
	id, order := b.late(agent)
	apptest.Equal(t, "found", found(b.run()), "ref1 surplus cancelled "+order)
	apptest.Equal(t, "given up at the seller", b.Seller.Of(id)[0].Released, true)
	apptest.Equal(t, "the balance", b.Balance(agent), before)
	apptest.Equal(t, "found again", found(b.run()), "")
	t.Run("unless the seller takes nothing back", func(t *testing.T) {
		b.Seller.Can(func(c *procurement.Capabilities) { c.Cancels = false })
		_, order := b.late(agent)
		r := b.run()
		apptest.Equal(t, "found", found(r), "ref2 surplus runs to its end "+order)
		apptest.Equal(t, "orphans", r.Orphans(), 1)
	})
	t.Run("and without its key it is unknown", func(t *testing.T) {
		b.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey, c.Cancels = false, true })
		b.late(agent)
		if r := b.run(); !strings.HasSuffix(found(r), "ref3 orphan left ") {
			t.Errorf("found %s", found(r))
		}
	})
}

// An order that was lost, cancelled here and shown again is cancelled there once more.
func TestWhatIsBackAfterItWasGivenUpIsCancelled(t *testing.T) {
	t.Parallel()
	b := open(t)
	agent := b.RegisterFunded(100)
	v := b.Buy(agent, apptest.RemoteStatic)
	b.Seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	b.RunMinutes(60 + int((procurement.LostAfter+2*procurement.RereadAfter)/time.Minute))
	apptest.Equal(t, "the session", b.Read(agent, v.ID).Reason, session.ProviderLost)
	apptest.Equal(t, "found while it is away", found(b.run()), "")
	b.Seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = false })
	b.Seller.Next(fake.Release, fake.Refuse(procurement.Temporary))
	order := b.purchase(v.ID).ID
	apptest.Equal(t, "found while the seller refuses", found(b.run()), "ref1 surplus remains "+order)
	apptest.Equal(t, "found", found(b.run()), "ref1 surplus cancelled "+order)
	apptest.Equal(t, "given up at the seller", b.Seller.Of(v.ID)[0].Released, true)
}

// A frozen order that is listed with its key is the order.
func TestAnUnknownOrderThatIsListedIsAdopted(t *testing.T) {
	t.Parallel()
	b := open(t)
	agent := b.RegisterFunded(100)
	b.Seller.Next(fake.Provision, fake.LoseAnswer())
	b.Seller.Always(fake.Find, fake.Refuse(procurement.Temporary))
	v := b.Buy(agent, apptest.RemoteStatic)
	b.Clock.Advance(procurement.FreezeAfter)
	apptest.OK(t, b.RunOrders())
	o := b.purchase(v.ID)
	apptest.Equal(t, "frozen", !o.FrozenAt.IsZero(), true)
	apptest.Equal(t, "found", found(b.run()), "ref1 lost adopted "+o.ID)
	apptest.Equal(t, "the session", b.Read(agent, v.ID).Status, session.Active)
	apptest.Equal(t, "found again", found(b.run()), "")
}

// What is on its way is no orphan.
func TestWhatIsOnItsWayIsUndecided(t *testing.T) {
	t.Parallel()
	b := open(t)
	agent := b.RegisterFunded(100)
	b.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = false })
	b.Seller.Next(fake.Provision, fake.LoseAnswer())
	b.Buy(agent, apptest.RemoteStatic)
	r := b.run()
	apptest.Equal(t, "found", found(r), "ref1 undecided left ")
	apptest.Equal(t, "orphans", r.Orphans(), 0)
}

// Each provider is compared once a day, whatever failed before.
func TestTheDailyRun(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.Seller.Next(fake.List, fake.Refuse(procurement.Temporary))
	lists := func(want int) {
		t.Helper()
		apptest.OK(t, b.RunDue(t.Context()))
		apptest.Equal(t, "lists", b.Seller.Calls(fake.List), want)
	}
	lists(1)
	last, err := b.Last(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "stored", len(last), 0)
	lists(2)
	lists(2)
	b.Clock.Advance(reconcile.Every - time.Second)
	lists(2)
	b.Clock.Advance(time.Second)
	lists(3)
	t.Run("a failure shows in the report", func(t *testing.T) {
		b.Seller.Next(fake.List, fake.Refuse(procurement.Auth))
		reports, err := b.Run(t.Context(), "")
		if err != nil || len(reports) != 1 || procurement.ClassOf(reports[0].Err) != procurement.Auth {
			t.Errorf("the reports are %+v, %v", reports, err)
		}
	})
	t.Run("an unknown provider and one without a list are refused", func(t *testing.T) {
		_, err := b.Run(t.Context(), "unknown")
		apptest.ErrorIs(t, err, domain.ErrInvalid)
		_, err = b.Run(t.Context(), "embedded")
		apptest.ErrorIs(t, err, reconcile.ErrCannotList)
	})
}

// What a seller does not take back is known to run to its end.
func TestWhatRunsToItsEndIsKept(t *testing.T) {
	t.Parallel()
	b := open(t)
	agent := b.RegisterFunded(100)
	v := b.Buy(agent, apptest.RemoteStatic)
	b.Seller.Always(fake.Release, fake.Refuse(procurement.Unsupported))
	_, err := b.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	apptest.OK(t, b.RunOrders())
	apptest.Equal(t, "closed", !b.purchase(v.ID).ClosedAt.IsZero(), true)
	r := b.run()
	apptest.Equal(t, "found", found(r), "")
	apptest.Equal(t, "kept", r.Kept, 1)
}
