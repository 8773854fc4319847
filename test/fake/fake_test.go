package fake_test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/contract"
	"agentproxy/test/fake"
)

func TestContract(t *testing.T) {
	for _, local := range []bool{false, true} {
		contract.Provider(t, func(t *testing.T) ports.Provider {
			p := fake.NewProvider("fake")
			p.SetLocal(local)
			return p
		})
	}
}

func TestClock(t *testing.T) {
	c := fake.NewClock()
	if !c.Now().Equal(fake.Start) || !c.Now().Equal(c.Now()) {
		t.Error("it does not stand still")
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
	var ids, again fake.IDs
	shape := regexp.MustCompile(`^sess_[a-z2-7]{20}$`)
	seen := map[string]bool{}
	for n := range uint64(1000) {
		id := ids.New(traffic.IDPrefix)
		if again.New("txn_"); id != again.New(traffic.IDPrefix) || id != fake.ID(traffic.IDPrefix, n+1) {
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
	if err := catalog.Check(fake.NewProvider("x").Products()); err != nil {
		t.Error(err)
	}
}

func order(p *fake.Provider, no string, quantity int) ports.Order {
	for _, product := range p.Products() {
		if product.No == no {
			return ports.Order{Ref: "sess_1", Product: product, Quantity: quantity, Days: 30}
		}
	}
	panic("no product " + no)
}

func TestProviderFollowsItsScript(t *testing.T) {
	ctx := t.Context()
	t.Run("each refusal is answered, and nothing is bought", func(t *testing.T) {
		for _, refusal := range []error{catalog.ErrOutOfStock, ports.ErrProvider, ports.ErrTimeout, ports.ErrAmbiguous} {
			p := fake.NewProvider("fake")
			p.Always(fake.Provision, fake.Refuse(refusal))
			for range 2 {
				if exits, err := p.Provision(ctx, order(p, "sta_sync", 2)); !errors.Is(err, refusal) || exits != nil {
					t.Errorf("got %v, %v, want %v", exits, err, refusal)
				}
			}
			if len(p.Books()) != 0 || p.Calls(fake.Provision) != 2 {
				t.Errorf("after %d calls the books hold %v", p.Calls(fake.Provision), p.Books())
			}
		}
	})
	t.Run("a lost answer was work done, and asking again finds it", func(t *testing.T) {
		p := fake.NewProvider("fake")
		p.Next(fake.Provision, fake.LoseRequest(), fake.LoseAnswer())
		for i, bought := range []int{0, 1} {
			if _, err := p.Provision(ctx, order(p, "sta_sync", 2)); !errors.Is(err, ports.ErrAmbiguous) || len(p.Books()) != bought {
				t.Errorf("call %d: %v, the books hold %v", i+1, err, p.Books())
			}
		}
		exits, err := p.Provision(ctx, order(p, "sta_sync", 2))
		if b := p.Books()["sess_1"]; err != nil || !slices.Equal(b.Exits, exits) || len(p.Books()) != 1 {
			t.Errorf("got %v, %v; the books hold %v", exits, err, p.Books())
		}
	})
	t.Run("the books say what became of a purchase", func(t *testing.T) {
		p := fake.NewProvider("fake")
		o := order(p, "dyn_sync", 1)
		exits, err := p.Provision(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		exit, err := p.Rotate(ctx, o, exits[0])
		until := fake.Start.Add(time.Hour)
		if err = errors.Join(err, p.Extend(ctx, o, until)); err != nil {
			t.Fatal(err)
		}
		if b := p.Books()[o.Ref]; b.Exits[0] != exit || b.Rotations != 1 || !b.Until.Equal(until) || !slices.Equal(p.Live(), []string{o.Ref}) {
			t.Errorf("the books hold %+v", b)
		}
		if err := p.Release(ctx, o.Ref); err != nil || len(p.Live()) != 0 || !p.Books()[o.Ref].Released {
			t.Errorf("released: %v, %v", err, p.Books())
		}
		if _, err := p.Rotate(ctx, o, exit); !errors.Is(err, ports.ErrProvider) {
			t.Errorf("what was released rotates: %v", err)
		}
	})
	t.Run("a released address is sold again", func(t *testing.T) {
		p := fake.NewProvider("fake")
		o := order(p, "sta_sync", 3)
		first, _ := p.Provision(ctx, o)
		if err := p.Release(ctx, o.Ref); err != nil {
			t.Fatal(err)
		}
		o.Ref = "sess_2"
		if second, err := p.Provision(ctx, o); err != nil || !slices.Equal(first, second) {
			t.Errorf("got %v, %v, want %v", second, err, first)
		}
	})
}

func TestProviderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake.NewProvider("fake")
		p.Always(fake.Provision, fake.Step{Delay: time.Minute})
		start := time.Now()
		if _, err := p.Provision(t.Context(), order(p, "dyn_sync", 1)); err != nil || time.Since(start) != time.Minute {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		late := order(p, "dyn_sync", 1)
		late.Ref = "sess_2"
		if _, err := p.Provision(ctx, late); !errors.Is(err, ports.ErrTimeout) || len(p.Books()) != 1 {
			t.Errorf("a caller who went away got %v, the books hold %v", err, slices.Collect(maps.Keys(p.Books())))
		}
		gate := make(chan struct{})
		p.Next(fake.Provision, fake.Step{Gate: gate})
		done := make(chan error, 1)
		go func() {
			_, err := p.Provision(t.Context(), late)
			done <- err
		}()
		synctest.Wait()
		if len(p.Books()) != 1 {
			t.Error("it did not wait at the gate")
		}
		close(gate)
		if err := <-done; err != nil || len(p.Books()) != 2 {
			t.Errorf("behind the gate: %v", err)
		}
	})
}

// A rotation that loses its answer has rotated all the same.
func TestALostRotation(t *testing.T) {
	p := fake.NewProvider("fake")
	o := order(p, "dyn_sync", 1)
	exits, err := p.Provision(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p.Next(fake.Rotate, fake.LoseAnswer())
	if exit, err := p.Rotate(t.Context(), o, exits[0]); !errors.Is(err, ports.ErrAmbiguous) || exit != (session.Exit{}) {
		t.Errorf("got %v, %v", exit, err)
	}
	if b := p.Books()[o.Ref]; b.Rotations != 1 || b.Exits[0] == exits[0] {
		t.Errorf("the books hold %+v", b)
	}
}
