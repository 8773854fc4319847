package proxycheap_test

import (
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/fake/proxycheap"
	"agentproxy/test/fake/seller"
)

// month returns an intent to renew by one month.
func month(key string) procurement.Intent {
	return procurement.Intent{Key: key, Type: session.Static, SKU: proxycheap.Plan, Quantity: 3, Days: 30, Location: session.Location{Country: "US"}}
}

func classes(done []procurement.Renewed) (out [3]procurement.Class) {
	for i, r := range done {
		out[i] = procurement.ClassOf(r.Err)
	}
	return out
}

func TestARenewalIsReportedForEachAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*proxycheap.Seller, []proxycheap.Proxy)
		want     [3]procurement.Class
		extended [3]int // by the seller
	}{
		"all": {func(*proxycheap.Seller, []proxycheap.Proxy) {}, [3]procurement.Class{}, [3]int{1, 1, 1}},
		"one is refused": {func(s *proxycheap.Seller, p []proxycheap.Proxy) { s.RefuseRenewal(p[1].ID, true) },
			[3]procurement.Class{"", procurement.Invalid, ""}, [3]int{1, 0, 1}},
		"the money ends": {func(s *proxycheap.Seller, _ []proxycheap.Proxy) { s.SetBalance(proxycheap.Unit * 2) },
			[3]procurement.Class{"", "", procurement.InsufficientFunds}, [3]int{1, 1, 0}},
		"a request is lost": {func(s *proxycheap.Seller, _ []proxycheap.Proxy) {
			s.Next("extend-period", seller.None, seller.DropRequest)
		},
			[3]procurement.Class{"", procurement.Ambiguous, procurement.Temporary}, [3]int{1, 0, 0}},
		"an answer is lost": {func(s *proxycheap.Seller, _ []proxycheap.Proxy) {
			s.Next("extend-period", seller.None, seller.DropAnswer)
		},
			[3]procurement.Class{"", "", procurement.Temporary}, [3]int{1, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := proxycheap.New(t)
			p := newProvider(t, s, nil)
			d := orderLive(t, p, "ord_1")
			c.change(s, s.Orders()[0].Proxies)
			done, err := p.Renew(t.Context(), d.Ref, month("ord_2"))
			if err != nil || len(done) != 3 || classes(done) != c.want {
				t.Fatalf("renewed %v, %v, want %v", classes(done), err, c.want)
			}
			for i, proxy := range s.Orders()[0].Proxies {
				if proxy.Extended != c.extended[i] {
					t.Errorf("address %d was extended %d times, want %d", i, proxy.Extended, c.extended[i])
				}
				if done[i].Addr != proxy.Addr || !done[i].ExpiresAt.Equal(proxy.ExpiresAt) {
					t.Errorf("address %d ends at %v, the seller shows %v", i, done[i].ExpiresAt, proxy.ExpiresAt)
				}
			}
		})
	}
}

// The addresses that the first renewal reached are skipped by the second.
func TestARepeatedRenewalDoesTheRest(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	p := newProvider(t, s, nil)
	d := orderLive(t, p, "ord_1")
	s.Next("extend-period", seller.None, seller.DropRequest)
	if done, err := p.Renew(t.Context(), d.Ref, month("ord_2")); err != nil || classes(done) != [3]procurement.Class{"", procurement.Ambiguous, procurement.Temporary} {
		t.Fatalf("renewed %v, %v", classes(done), err)
	}
	read, err := p.Read(t.Context(), d.Ref)
	if err != nil || !read.IPs[0].ExpiresAt.After(read.IPs[1].ExpiresAt.Add(27*24*time.Hour)) || !read.ExpiresAt.Equal(d.ExpiresAt) {
		t.Errorf("read, it ends at %v: %v", read.ExpiresAt, err)
	}
	done, err := p.Renew(t.Context(), d.Ref, month("ord_3"))
	if err != nil || classes(done) != [3]procurement.Class{} {
		t.Fatalf("repeated %v, %v", classes(done), err)
	}
	for i, proxy := range s.Orders()[0].Proxies {
		if proxy.Extended != 1 || !done[i].ExpiresAt.Equal(proxy.ExpiresAt) {
			t.Errorf("address %d was extended %d times", i, proxy.Extended)
		}
	}
	if want := domain.MustMoney("30.51") + 3*proxycheap.Unit; s.Spent() != want {
		t.Errorf("spent %s, want %s", s.Spent(), want)
	}
	if done, err := p.Renew(t.Context(), d.Ref, month("ord_4")); err != nil || classes(done) != [3]procurement.Class{} || s.Orders()[0].Proxies[0].Extended != 2 {
		t.Errorf("another renewal: %v, %v", classes(done), err)
	}
}

func TestARenewalOfNothingIsAnError(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	p := newProvider(t, s, nil)
	early, err := p.Order(t.Context(), addresses("ord_0"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Renew(t.Context(), early.Ref, month("ord_9"))
	refusedAs(t, err, procurement.Conflict)
	d := orderLive(t, p, "ord_1")
	s.SetBalance(0)
	_, err = p.Renew(t.Context(), d.Ref, month("ord_2"))
	refusedAs(t, err, procurement.InsufficientFunds)
	odd := month("ord_3")
	odd.Days = 31
	_, err = p.Renew(t.Context(), d.Ref, odd)
	refusedAs(t, err, procurement.Invalid)
	s.SetStatus(d.Ref, proxycheap.Expired)
	_, err = p.Renew(t.Context(), d.Ref, month("ord_4"))
	refusedAs(t, err, procurement.NotFound)
	_, err = p.Renew(t.Context(), "0198ffff-0000", month("ord_5"))
	refusedAs(t, err, procurement.NotFound)
	refusedAs(t, p.Cancel(t.Context(), d.Ref), procurement.Unsupported)
}
