package list_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/upstream/list"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/contract"
)

func TestStaticContract(t *testing.T) {
	t.Parallel()
	contract.Seller(t, func(t *testing.T) contract.Selling {
		w := newWorld(t, hosts(90, " US miami"))
		return contract.Selling{Provider: w.static(), Sold: w.sold,
			Static: &procurement.Intent{Days: 30, Quantity: 2, Location: session.Location{Country: "US", City: "miami"}}}
	})
}

// sold counts the orders that have lines.
func (w *world) sold() int {
	orders := map[string]bool{}
	err := w.store.View(w.t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		all, err := tx.Claims().All(ctx, "own")
		for _, c := range all {
			orders[c.OrderID] = true
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	return len(orders)
}

func TestAnAddressIsAsTheLineStatesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "socks5://bob:secret@198.51.100.1:1080 US newyork isp\n")
	w.exit("198.51.100.1", "203.0.113.7")
	d := w.buy(w.static(), order(session.Static, 1))
	if len(d.IPs) != 1 || d.Ref != "ord_1" || d.Label != "ord_1" || !d.ExpiresAt.Equal(w.time().AddDate(0, 0, 30)) {
		t.Fatalf("delivered %+v", d)
	}
	ip := d.IPs[0]
	e, ok := ip.Endpoint(session.HTTP)
	want := procurement.Endpoint{Protocol: session.SOCKS5, Host: "198.51.100.1", Port: 1080, User: "bob", Password: "secret", Trusted: true}
	if ip.Addr.String() != "203.0.113.7" || ip.Country != "US" || !ok || e != want {
		t.Errorf("the address is %s in %s, by %s %s:%d %s trusted %v", ip.Addr, ip.Country, e.Protocol, e.Host, e.Port, e.User, e.Trusted)
	}
}

func TestReplicasNeverSellALineTwice(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, stores func() ports.Store) {
		const lines, buyers = 30, 25 // each of two replicas
		w := newWorld(t, hosts(lines, ""))
		var mu sync.Mutex
		owner := map[string]string{}
		sold, refused := 0, 0
		var wg sync.WaitGroup
		for range 2 {
			w.store = stores()
			p := w.static()
			for n := range buyers {
				wg.Go(func() {
					// Both replicas have every order: they drive it after a crash of the other.
					d, err := p.Order(t.Context(), order(session.Static, n))
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Errorf("order %d: %v", n, err)
						return
					}
					if before, twice := owner[d.IPs[0].Addr.String()]; twice && before != d.Ref {
						t.Errorf("%s is sold to %s and %s", d.IPs[0].Addr, before, d.Ref)
					}
					owner[d.IPs[0].Addr.String()] = d.Ref
				})
			}
		}
		wg.Wait()
		if len(owner) != buyers || w.sold() != buyers {
			t.Fatalf("%d orders have %d lines", w.sold(), len(owner))
		}
		p := w.static()
		for n := range lines {
			wg.Go(func() {
				_, err := p.Order(t.Context(), order(session.Static, 100+n))
				mu.Lock()
				defer mu.Unlock()
				switch procurement.ClassOf(err) {
				case "":
					sold++
				case procurement.OutOfStock:
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if sold != lines-buyers || refused != buyers {
			t.Errorf("of the last %d lines %d were sold, %d orders refused", lines-buyers, sold, refused)
		}
	})
}

func TestWhatIsSoldIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	ends := time.Now().UTC().AddDate(0, 0, 20).Format(time.DateOnly)
	w := newWorld(t, "198.51.100.1:1 US miami isp\n198.51.100.2:1 US - mobile\n198.51.100.3:1 DE - isp "+ends+"\n198.51.100.4:1\n198.51.100.5:1 FR\n")
	w.exit("198.51.100.5", "") // it does not work
	p := w.static()
	at := func(n int, sku, country, city string, days, quantity int) procurement.Intent {
		in := order(session.Static, n)
		in.SKU, in.Location, in.Days, in.Quantity = sku, session.Location{Country: country, City: city}, days, quantity
		return in
	}
	w.refused(p, at(1, "", "US", "boston", 30, 1), procurement.OutOfStock)
	w.refused(p, at(2, "", "GB", "", 30, 1), procurement.OutOfStock)
	w.refused(p, at(3, "datacenter", "US", "", 30, 1), procurement.OutOfStock)
	w.refused(p, at(4, "", "US", "", 30, 3), procurement.OutOfStock) // all or none
	w.refused(p, at(5, "", "DE", "", 30, 1), procurement.OutOfStock) // it ends before
	w.refused(p, at(6, "", "FR", "", 30, 1), procurement.OutOfStock)
	if n := w.sold(); n != 0 {
		t.Fatalf("%d refused orders have lines", n)
	}
	for _, c := range []struct {
		in   procurement.Intent
		want string
	}{
		{at(7, "mobile", "US", "", 30, 1), "198.51.100.2"}, {at(8, "", "US", "Miami", 30, 1), "198.51.100.1"},
		{at(9, "", "DE", "", 19, 1), "198.51.100.3"}, {at(10, "", "", "", 30, 1), "198.51.100.4"},
	} {
		if d := w.buy(p, c.in); d.IPs[0].Host != c.want {
			t.Errorf("order %s got %s, want %s", c.in.Key, d.IPs[0].Host, c.want)
		}
	}
	w.refused(p, at(11, "", "", "", 1, 1), procurement.OutOfStock)
	if err := p.Cancel(t.Context(), "ord_8"); err != nil {
		t.Fatal(err)
	}
	if d := w.buy(p, at(12, "", "", "", 1, 1)); d.IPs[0].Host != "198.51.100.1" {
		t.Errorf("the line that was given back: %s", d.IPs[0].Host)
	}
}

func TestLinesWithOneExitAreOneAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1\n198.51.100.1:2\n198.51.100.2:1\n")
	p := w.static()
	if q, err := p.Quote(t.Context(), procurement.Intent{Quantity: 3, Days: 1}); err != nil || q.Stock != procurement.StockNo {
		t.Errorf("three lines of two exits: %+v, %v", q, err)
	}
	in := order(session.Static, 1)
	in.Quantity = 2
	if d := w.buy(p, in); d.IPs[0].Addr == d.IPs[1].Addr {
		t.Errorf("one order has %s twice", d.IPs[0].Addr)
	}
	w.refused(p, order(session.Static, 2), procurement.OutOfStock)
}

func TestStockIsTheLinesThatAreNotSold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hosts(3, " US - isp")+"203.0.113.1:1\n203.0.113.2:1 DE\n")
	p := w.static()
	w.buy(p, order(session.Static, 1))
	stock := func() string {
		offers, err := p.Offers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, o := range offers {
			fmt.Fprintf(&b, "%s/%s %s %d;", o.SKU, o.Location.Country, o.Stock, o.Count)
		}
		return b.String()
	}
	if got := stock(); got != "/DE yes 1;/ZZ yes 1;isp/US yes 2;" {
		t.Errorf("the stock is %s", got)
	}
	in := order(session.Static, 2)
	in.Location.Country, in.Quantity = "US", 2
	w.buy(p, in)
	if got := stock(); got != "/DE yes 1;/ZZ yes 1;isp/US no 0;" {
		t.Errorf("the stock is %s", got)
	}
}

func TestARenewalIsFreeUntilTheLineEnds(t *testing.T) {
	t.Parallel()
	ends := time.Now().UTC().AddDate(0, 0, 70)
	w := newWorld(t, "198.51.100.1:1 US - isp "+ends.Format(time.DateOnly)+"\n")
	p := w.static()
	d := w.buy(p, order(session.Static, 1))
	again := order(session.Static, 2)
	for range 2 { // the second is the same call again
		done, err := p.Renew(t.Context(), d.Ref, again)
		if err != nil || len(done) != 1 || done[0].Err != nil || done[0].Addr != d.IPs[0].Addr || !done[0].ExpiresAt.Equal(d.ExpiresAt.AddDate(0, 0, 30)) {
			t.Fatalf("renewed: %+v, %v", done, err)
		}
	}
	if _, err := p.Renew(t.Context(), d.Ref, order(session.Static, 3)); procurement.ClassOf(err) != procurement.OutOfStock {
		t.Errorf("beyond the end of the line: %v", err)
	}
	if read, err := p.Read(t.Context(), d.Ref); err != nil || !read.ExpiresAt.Equal(d.ExpiresAt.AddDate(0, 0, 30)) {
		t.Errorf("read, it ends at %v, %v", read.ExpiresAt, err)
	}
	if _, err := p.Renew(t.Context(), "ord_9", order(session.Static, 4)); procurement.ClassOf(err) != procurement.NotFound {
		t.Errorf("an order that is not there: %v", err)
	}
}

func TestALineThatIsGoneIsReplacedOrReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1 US\n198.51.100.2:1 US\n198.51.100.3:1 DE\n")
	p := w.static()
	in := order(session.Static, 1)
	in.Location.Country, in.Quantity = "US", 2
	w.buy(p, in)
	w.write("198.51.100.2:1 US\n198.51.100.3:1 DE\n")
	w.keep(p)
	if got := p.Stock(); got["sold"] != 2 || got["sold_gone"] != 1 || got["listed"] != 2 || got["working"] != 2 {
		t.Errorf("the report is %v", got)
	}
	w.keep(p)
	if n := strings.Count(w.logged(), "not in the list any more"); n != 1 || !strings.Contains(w.logged(), "order_id=ord_1") {
		t.Errorf("it was logged %d times: %s", n, w.logged())
	}
	// A line of another place is no replacement.
	if _, err := p.Read(t.Context(), "ord_1"); procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("read without another line: %v", err)
	}
	if _, err := p.Renew(t.Context(), "ord_1", order(session.Static, 2)); procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("renewed without the line: %v", err)
	}
	w.write("198.51.100.2:1 US\n198.51.100.3:1 DE\n198.51.100.4:1 US\n")
	w.advance(time.Hour / 2)
	w.keep(p)
	// Another replica may have a newer file with the line.
	if _, err := p.Read(t.Context(), "ord_1"); procurement.ClassOf(err) != procurement.Temporary {
		t.Errorf("replaced within the hour: %v", err)
	}
	w.advance(time.Hour)
	w.keep(p)
	d, err := p.Read(t.Context(), "ord_1")
	if err != nil || len(d.IPs) != 2 {
		t.Fatalf("replaced: %+v, %v", d, err)
	}
	var got []string
	for _, ip := range d.IPs {
		got = append(got, ip.Addr.String())
	}
	if s := strings.Join(got, " "); !strings.Contains(s, "198.51.100.4") || !strings.Contains(s, "198.51.100.2") {
		t.Errorf("the order has %s", s)
	}
	in.Key, in.Quantity = "ord_3", 1
	w.refused(p, in, procurement.OutOfStock)
	w.keep(p)
	if got := p.Stock(); got["sold_gone"] != 0 {
		t.Errorf("the report is %v", got)
	}
}

func TestALineThatFailsForAnHourIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1\n198.51.100.2:1\n")
	p := w.static()
	d := w.buy(p, order(session.Static, 1))
	sold, free := d.IPs[0].Host, "198.51.100.2"
	if sold == free {
		free = "198.51.100.1"
	}
	w.exit(sold, "")
	for range 12 {
		w.advance(4 * time.Minute)
		w.keep(p)
	}
	if d, err := p.Read(t.Context(), "ord_1"); err != nil || d.IPs[0].Host != sold {
		t.Fatalf("after 48 minutes: %+v, %v", d.IPs, err)
	}
	if got := p.Stock(); got["sold_failing"] != 1 || got["working"] != 1 {
		t.Errorf("the report is %v", got)
	}
	w.advance(13 * time.Minute)
	if d, err := p.Read(t.Context(), "ord_1"); err != nil || d.IPs[0].Host != free || d.IPs[0].Addr.String() != free {
		t.Errorf("after an hour: %+v, %v", d.IPs, err)
	}
}

func TestAnExitThatMovesMovesTheAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1\n198.51.100.2:1\n")
	p := w.static()
	d := w.buy(p, order(session.Static, 1))
	w.exit(d.IPs[0].Host, "203.0.113.50")
	w.advance(time.Hour)
	w.keep(p)
	if d, err := p.Read(t.Context(), "ord_1"); err != nil || d.IPs[0].Addr.String() != "203.0.113.50" {
		t.Errorf("read: %v, %v", d.IPs, err)
	}
	// The address of another order is not taken over: it would be sold twice.
	other := w.buy(p, order(session.Static, 2))
	w.exit(other.IPs[0].Host, "203.0.113.50")
	w.advance(time.Hour)
	w.keep(p)
	if d, err := p.Read(t.Context(), "ord_2"); err != nil || d.IPs[0].Addr != other.IPs[0].Addr {
		t.Errorf("read: %v, %v", d.IPs, err)
	}
}

func TestAFileIsLoadedAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1\n")
	p := w.static()
	w.keep(p)
	w.write("198.51.100.1:1\n198.51.100.2:1\n")
	w.keep(p)
	w.buy(p, order(session.Static, 1))
	w.buy(p, order(session.Static, 2))
	w.write("198.51.100.1:1\nhunter2:hunter2\n198.51.100.9:1\n")
	for range 3 {
		w.keep(p)
	}
	if got := p.Stock()["listed"]; got != 2 || strings.Contains(w.logged(), "hunter2") ||
		strings.Count(w.logged(), "the last good one stays") != 1 || !strings.Contains(w.logged(), "line 2: must be host:port") {
		t.Errorf("with a fault %d are listed: %s", got, w.logged())
	}
	w.write("")
	w.keep(p)
	if got := p.Stock()["listed"]; got != 2 {
		t.Errorf("an empty file leaves %d", got)
	}
	w.write("198.51.100.1:1\n")
	w.keep(p)
	if got := p.Stock()["listed"]; got != 1 {
		t.Errorf("mended, %d are listed", got)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1:hunter2\nx y\n")
	_, err := list.New(list.Config{Pool: list.Pool{SoldAs: "both", Protocol: "ftp", Country: "XX", Echo: "file:///"}, File: w.file})
	want := []string{"options.sold_as must be static or dynamic", "options.protocol must be http or socks5",
		"options.country must be an ISO 3166-1 code such as US", "options.echo must be an http or https URL",
		"options.file: line 1: has a user name without a password", "options.file: line 2: must be host:port"}
	if err == nil || strings.Count(err.Error(), "\n") != len(want)-1 || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("got %v", err)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in %v", text, err)
		}
	}
	for _, c := range []list.Config{{}, {File: w.file, URL: "https://example.com"}, {File: "nowhere"}, {File: t.TempDir()},
		{URL: "http://example.com/hunter2"}, {URL: "hunter2"}} {
		c.Name, c.SoldAs = "own", "static"
		if _, err := list.New(c); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("file %q, URL %q: %v", c.File, c.URL, err)
		}
	}
}

func TestNothingIsSoldWithoutAStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hosts(2, ""))
	w.store = nil
	p := w.static()
	if offers, err := p.Offers(t.Context()); err != nil || len(offers) != 1 || offers[0].Count != 2 {
		t.Errorf("the offers are %+v, %v", offers, err)
	}
	w.refused(p, order(session.Static, 1), procurement.Temporary)
}
