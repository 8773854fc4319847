package fake_test

import (
	"context"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/contract"
	"agentproxy/test/fake"
)

func TestContract(t *testing.T) {
	t.Parallel()
	build := func(change func(*procurement.Capabilities)) func(t *testing.T) contract.Selling {
		return func(t *testing.T) contract.Selling {
			p := fake.NewProvider("fake")
			p.SetClock(time.Now)
			p.Can(change)
			s := contract.Selling{Provider: p, Dynamic: &procurement.Intent{Bytes: 1e9},
				Static: &procurement.Intent{Quantity: 2, Days: 30, Taken: map[string]bool{}}}
			if p.Capabilities().InProcess {
				return s
			}
			s.Sold = func() int { return len(p.Sales()) }
			s.LoseAnswer = func() { p.Next(fake.Provision, fake.LoseAnswer()) }
			s.LoseRequest = func() { p.Next(fake.Provision, fake.LoseRequest()) }
			s.Vanish = func(ref string) {
				for _, b := range p.Sales() {
					if b.Delivery.Ref == ref {
						p.Change(b.SessionID, func(b *fake.Purchase) { b.Gone = true })
					}
				}
			}
			return s
		}
	}
	for name, change := range map[string]func(*procurement.Capabilities){
		"local":      func(c *procurement.Capabilities) { c.InProcess, c.KeepsOrderKey = true, false },
		"labelled":   func(*procurement.Capabilities) {},
		"nameless":   func(c *procurement.Capabilities) { c.KeepsOrderKey, c.Cancels = false, false },
		"repeatable": func(c *procurement.Capabilities) { c.Idempotent = true },
		"chained":    func(c *procurement.Capabilities) { c.ViaUpstream, c.Direct = true, true },
	} {
		t.Run(name, func(t *testing.T) { contract.Seller(t, build(change)) })
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	c := fake.NewClock()
	if !c.Now().Equal(fake.Start) || !c.Now().Equal(c.Now()) {
		t.Error("it does not stop")
	}
	if now := c.Advance(time.Hour); !now.Equal(fake.Start.Add(time.Hour)) || !now.Equal(c.Now()) {
		t.Errorf("an hour later it is %s", now)
	}
	c.Set(time.Date(2027, 1, 2, 3, 4, 5, 6789, time.FixedZone("", 3600)))
	if want := time.Date(2027, 1, 2, 2, 4, 5, 6000, time.UTC); c.Now() != want {
		t.Errorf("it is %s, want %s", c.Now(), want)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	var ids, again fake.IDs
	shape := regexp.MustCompile(`^sess_[a-z2-7]{20}$`)
	seen := map[string]bool{}
	for n := range uint64(1000) {
		id := ids.New(session.IDPrefix)
		if again.New("txn_"); id != again.New(session.IDPrefix) || id != fake.ID(session.IDPrefix, n+1) {
			t.Fatalf("%s is not the same on every run", id)
		}
		if !shape.MatchString(id) || seen[id] {
			t.Fatalf("%s has the wrong shape, or was made twice", id)
		}
		seen[id] = true
	}
	if got := fake.ID("sess_", 1); got != "sess_aaaaaaaaaaaaaaaaaaab" {
		t.Errorf("the first session is %s", got)
	}
}

func TestProductsAreACatalogue(t *testing.T) {
	t.Parallel()
	if err := catalog.Check(fake.NewProvider("x").Products()); err != nil {
		t.Error(err)
	}
}

func intent(n string) procurement.Intent {
	return procurement.Intent{Key: "ord_" + n, SessionID: "sess_" + n, Type: session.Static, Quantity: 2, Days: 30}
}

func TestProviderFollowsItsScript(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, class := range []procurement.Class{procurement.OutOfStock, procurement.Temporary, procurement.TimedOut, procurement.Ambiguous} {
		p := fake.NewProvider("fake")
		p.Always(fake.Provision, fake.Refuse(class))
		for range 2 {
			if _, err := p.Order(ctx, intent("1")); procurement.ClassOf(err) != class {
				t.Errorf("got %v, want %v", err, class)
			}
		}
		if len(p.Sales()) != 0 || p.Calls(fake.Provision) != 2 {
			t.Errorf("after %d calls the sales are %v", p.Calls(fake.Provision), p.Sales())
		}
	}
	p := fake.NewProvider("fake")
	p.SetAsync(2)
	d, err := p.Order(ctx, intent("1"))
	if err != nil || d.State != procurement.Pending {
		t.Fatalf("ordered: %s, %v", d.State, err)
	}
	for _, want := range []procurement.State{procurement.Pending, procurement.Live, procurement.Live} {
		if d, err := p.Read(ctx, d.Ref); err != nil || d.State != want {
			t.Errorf("read: %s, %v, want %s", d.State, err, want)
		}
	}
	if live := p.Live(); !slices.Equal(live, []string{"sess_1"}) {
		t.Errorf("live are %v", live)
	}
	if err := p.Cancel(ctx, d.Ref); err != nil || len(p.Live()) != 0 || !p.Of("sess_1")[0].Released {
		t.Errorf("cancelled: %v, %v", err, p.Sales())
	}
	if again, err := p.Order(ctx, intent("2")); err != nil || again.IPs[0] != d.IPs[0] {
		t.Errorf("a released address is sold again: %v, %v", again.IPs, err)
	}
}

func TestProviderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake.NewProvider("fake")
		p.Always(fake.Provision, fake.Step{Delay: time.Minute})
		start := time.Now()
		if _, err := p.Order(t.Context(), intent("1")); err != nil || time.Since(start) != time.Minute {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Order(ctx, intent("2")); procurement.ClassOf(err) != procurement.TimedOut || len(p.Sales()) != 1 {
			t.Errorf("a caller who went away got %v, the sales are %v", err, p.Sales())
		}
		gate := make(chan struct{})
		p.Next(fake.Provision, fake.Step{Gate: gate})
		done := make(chan error, 1)
		go func() {
			_, err := p.Order(t.Context(), intent("2"))
			done <- err
		}()
		synctest.Wait()
		if len(p.Sales()) != 1 {
			t.Error("it did not wait at the gate")
		}
		close(gate)
		if err := <-done; err != nil || len(p.Sales()) != 2 {
			t.Errorf("behind the gate: %v", err)
		}
	})
}
