package economics_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// What the sellers ask for: of an IP for 30 days and of a GB, before a shop gets dearer.
const (
	ipCost = domain.Dollar * 6 / 10
	gbCost = domain.Dollar * 3 / 10
)

// never is after every history.
const never = 10_000 * session.Day

// counterLag is how late a shop counts traffic.
const counterLag = 10 * time.Minute

// shop is a seller with a book of what it sold and what it is owed for that.
type shop struct {
	name string
	caps procurement.Capabilities
	// quotes: it returns the price beforehand. reports: the delivery has its cost. dearer: it
	// charges its price at the moment of the order, whatever was quoted.
	quotes, reports, dearer bool

	clock interface{ Now() time.Time }
	rng   *rand.Rand
	// during is what happens while a call is on its way.
	during func(money bool)
	count  func(what string)
	exits  *int // of all shops

	calm    bool
	price   int // percent of what it asks for usually
	soldOut bool
	closed  time.Time // it answers nothing until then
	empty   time.Time // its lists are empty until then
	book    []*sale
}

// sale is something that a shop sold.
type sale struct {
	procurement.Intent
	ref       string
	price     domain.Money // of the purchase
	renewals  map[string]domain.Money
	ips       []procurement.IP
	at        time.Time
	readyAt   time.Time // delivered
	listedAt  time.Time // shown
	ends      time.Time
	hidden    time.Time // not shown until then
	broken    bool      // the shop hid it for so long that it counts as taken back
	cancelled time.Time
	disabled  time.Time
	used      []use
}

type use struct {
	at    time.Time
	bytes int64
}

var (
	_ ports.Dynamic = (*shop)(nil)
	_ ports.Static  = (*shop)(nil)
	_ ports.Lister  = (*shop)(nil)
)

func (s *shop) Name() string                                                       { return s.name }
func (s *shop) Capabilities() procurement.Capabilities                             { return s.caps }
func (s *shop) Ready() bool                                                        { return true }
func (s *shop) Offers(context.Context) ([]procurement.Offer, error)                { return nil, nil }
func (s *shop) Balance(context.Context) (b procurement.ProviderBalance, err error) { return b, nil }

// chance is one in n, and never while the shop is calm.
func (s *shop) chance(n int) bool { return s.rng.IntN(n) == 0 && !s.calm }

// call is what a call meets before the shop does its work: what happens meanwhile, and
// perhaps a refusal.
func (s *shop) call(money bool) error {
	if s.chance(6) {
		s.during(money)
	}
	switch {
	case s.clock.Now().Before(s.closed):
		return procurement.Refuse(procurement.Temporary, "closed")
	case s.chance(25):
		s.count("call refused")
		return procurement.Refuse([]procurement.Class{procurement.Temporary, procurement.RateLimited, procurement.TimedOut}[s.rng.IntN(3)], "not now")
	case money && s.chance(20):
		s.count("request lost")
		return procurement.Refuse(procurement.Ambiguous, "the request was lost")
	}
	return nil
}

// answer is what becomes of an answer on its way back.
func (s *shop) answer(money bool) error {
	if s.chance(6) {
		s.during(money)
	}
	if money && s.chance(8) {
		s.count("answer lost")
		return procurement.Refuse(procurement.Ambiguous, "the answer was lost")
	}
	return nil
}

// asks returns the price of an intent at the moment.
func (s *shop) asks(in procurement.Intent) domain.Money {
	full := domain.Money(domain.MulDiv(in.Bytes, int64(gbCost), billing.GB))
	if in.Type == session.Static {
		full = ipCost * domain.Money(in.Quantity*in.Days) / 30
	}
	return full * domain.Money(s.price) / 100
}

func (s *shop) Quote(_ context.Context, in procurement.Intent) (q procurement.Quote, err error) {
	if err := s.call(false); err != nil {
		return q, err
	}
	if s.soldOut {
		return procurement.Quote{Stock: procurement.StockNo}, nil
	}
	if s.quotes {
		q.Cost = s.asks(in)
	}
	return q, s.answer(false)
}

// charge returns what an order costs, or refuses it.
func (s *shop) charge(in procurement.Intent, purchase bool) (domain.Money, error) {
	price := s.asks(in)
	if in.MaxCost > 0 && price > in.MaxCost && !(purchase && s.dearer) {
		s.count("too dear")
		return 0, procurement.Refuse(procurement.Conflict, "the price is above the most that it may cost")
	}
	return price, nil
}

func (s *shop) Order(_ context.Context, in procurement.Intent) (d procurement.Delivery, err error) {
	if err := s.call(true); err != nil {
		return d, err
	}
	if s.caps.Idempotent {
		for _, b := range s.book {
			if b.Key == in.Key {
				return s.describe(b), s.answer(true)
			}
		}
	}
	if s.soldOut {
		return d, procurement.Refuse(procurement.OutOfStock, "sold out")
	}
	price, err := s.charge(in, true)
	if err != nil {
		return d, err
	}
	now := s.clock.Now()
	b := &sale{Intent: in, ref: fmt.Sprintf("%s-%d", s.name, len(s.book)+1), price: price, renewals: map[string]domain.Money{},
		at: now, readyAt: now, listedAt: now}
	switch {
	case s.chance(6):
		b.readyAt = now.Add(time.Duration(s.rng.IntN(120)) * time.Minute)
		s.count("delivered late")
	case s.chance(60):
		b.readyAt = now.Add(30 * time.Hour)
		s.count("delivered after a day")
	case s.chance(60):
		b.readyAt, b.broken = now.Add(never), true
		s.count("never delivered")
	case s.chance(40):
		b.listedAt = now.Add(time.Duration(5+s.rng.IntN(300)) * time.Minute)
		b.broken = b.listedAt.Sub(now) >= lost
		s.count("listed very late")
	case s.chance(4):
		b.listedAt = now.Add(time.Duration(s.rng.IntN(100)) * time.Second)
	}
	if in.Type == session.Static {
		b.ends = b.readyAt.Add(time.Duration(in.Days) * session.Day)
		for range in.Quantity {
			*s.exits++
			addr := netip.AddrFrom4([4]byte{100, 64, byte(*s.exits >> 8), byte(*s.exits)})
			b.ips = append(b.ips, procurement.IP{ID: addr.String(), Addr: addr, Host: addr.String(), HTTPPort: 8080, User: "u", Password: "p"})
		}
	}
	s.book = append(s.book, b)
	s.count("sold")
	return s.describe(b), s.answer(true)
}

// describe returns a sale as the shop shows it.
func (s *shop) describe(b *sale) procurement.Delivery {
	d := procurement.Delivery{Ref: b.ref, State: procurement.Live, SKU: b.SKU, Location: b.Location, Quantity: b.Quantity,
		CreatedAt: b.at, ExpiresAt: b.ends, Access: procurement.Access{User: b.ref, Password: "p", CapBytes: b.Bytes}}
	if b.Type == session.Static {
		d.Access = procurement.Access{}
	}
	if s.caps.Labels(b.Type) {
		d.Label = b.Key
	}
	if s.reports || s.dearer {
		d.Cost = b.price
	}
	if s.clock.Now().Before(b.readyAt) {
		d.State = procurement.Pending
		return d
	}
	for _, ip := range b.ips {
		ip.ExpiresAt = b.ends
		d.IPs = append(d.IPs, ip)
	}
	return d
}

// shown reports whether the shop shows a sale at the moment.
func (s *shop) shown(b *sale) bool {
	now := s.clock.Now()
	return b.cancelled.IsZero() && !now.Before(s.empty) && !now.Before(b.hidden) && !now.Before(b.listedAt) &&
		(b.ends.IsZero() || now.Before(b.ends))
}

func (s *shop) find(ref string) *sale {
	for _, b := range s.book {
		if b.ref == ref && s.shown(b) {
			return b
		}
	}
	return nil
}

func (s *shop) Find(_ context.Context, in procurement.Intent) (list []procurement.Delivery, err error) {
	if err := s.call(false); err != nil {
		return nil, err
	}
	for _, b := range s.book {
		if b.Type == in.Type && b.SKU == in.SKU && s.shown(b) {
			list = append(list, s.describe(b))
		}
	}
	return list, s.answer(false)
}

func (s *shop) List(context.Context) (list []procurement.Delivery, err error) {
	if err := s.call(false); err != nil {
		return nil, err
	}
	for _, b := range s.book {
		if s.shown(b) {
			list = append(list, s.describe(b))
		}
	}
	return list, s.answer(false)
}

func (s *shop) Read(_ context.Context, ref string) (d procurement.Delivery, err error) {
	if err := s.call(false); err != nil {
		return d, err
	}
	b := s.find(ref)
	if b == nil {
		return d, procurement.Refuse(procurement.NotFound, "no such order")
	}
	return s.describe(b), s.answer(false)
}

func (s *shop) Cancel(_ context.Context, ref string) error {
	if err := s.call(false); err != nil {
		return err
	}
	b := s.find(ref)
	if b == nil {
		return nil
	}
	if !s.caps.CanCancel(b.Type) {
		return procurement.Refuse(procurement.Unsupported, "it runs to its end")
	}
	b.cancelled = s.clock.Now()
	s.count("cancelled")
	return s.answer(false)
}

func (s *shop) Renew(_ context.Context, ref string, in procurement.Intent) (done []procurement.Renewed, err error) {
	if err := s.call(true); err != nil {
		return nil, err
	}
	b := s.find(ref)
	if b == nil {
		return nil, procurement.Refuse(procurement.NotFound, "no such order")
	}
	price, err := s.charge(in, false)
	if err != nil {
		return nil, err
	}
	b.renewals[in.Key] += price
	b.ends = b.ends.Add(time.Duration(in.Days) * session.Day)
	s.count("renewed")
	for _, ip := range b.ips {
		done = append(done, procurement.Renewed{Addr: ip.Addr, ExpiresAt: b.ends})
	}
	return done, s.answer(true)
}

func (s *shop) Disable(_ context.Context, ref string) error {
	if err := s.call(false); err != nil {
		return err
	}
	b := s.find(ref)
	if b == nil {
		return procurement.Refuse(procurement.NotFound, "no such access")
	}
	if b.disabled.IsZero() {
		b.disabled = s.clock.Now()
	}
	return s.answer(false)
}

func (s *shop) Usage(_ context.Context, ref string) (u procurement.Usage, err error) {
	if err := s.call(false); err != nil {
		return u, err
	}
	b := s.find(ref)
	if b == nil {
		return procurement.Usage{Gone: true}, nil
	}
	u.AsOf = s.clock.Now()
	for _, part := range b.used {
		if s.calm || !u.AsOf.Before(part.at.Add(counterLag)) || s.rng.IntN(2) == 0 {
			u.Bytes += part.bytes
		}
	}
	return u, s.answer(false)
}

// use lets traffic through an access, as far as the shop does.
func (b *sale) use(bytes int64, now time.Time) {
	if b.disabled.IsZero() && b.cancelled.IsZero() {
		b.used = append(b.used, use{now, min(bytes, b.Bytes-b.traffic())})
	}
}

func (b *sale) traffic() (bytes int64) {
	for _, u := range b.used {
		bytes += u.bytes
	}
	return bytes
}

// owed returns what the shop is to be paid for a sale. What it took back within a day is
// free, and later the days that are left are.
func (b *sale) owed() domain.Money {
	if b.Type == session.Dynamic {
		return domain.Money(domain.MulDiv(b.traffic(), int64(b.price), b.Bytes))
	}
	all := b.price
	for _, r := range b.renewals {
		all += r
	}
	if b.cancelled.IsZero() {
		return all
	}
	used := b.cancelled.Sub(b.readyAt) // nothing is owed for days before it delivered
	if used < session.Day {
		return 0
	}
	return all * domain.Money(min(used, b.ends.Sub(b.readyAt))/time.Hour) / domain.Money(b.ends.Sub(b.readyAt)/time.Hour)
}

func (s *shop) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	if t.Protocol == "" {
		t.Protocol = session.HTTP
	}
	return procurement.Endpoint{Protocol: t.Protocol, Host: s.name + ".test", Port: 7000, User: a.User + t.Token, Password: a.Password}, nil
}

func (s *shop) NewExit(procurement.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, nil
}
