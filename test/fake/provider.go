package fake

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Op is a call of a provider.
type Op string

// The calls that can be scripted.
const (
	Quote     Op = "quote"
	Provision Op = "order"
	Find      Op = "find"
	Read      Op = "read"
	Rotate    Op = "new exit"
	Extend    Op = "renew"
	Release   Op = "cancel"
	UsageOf   Op = "usage"
)

// Step says how a provider behaves in one call: it waits, does the work or does
// not, and answers. The zero Step does the work at once and says so.
type Step struct {
	Delay time.Duration   // before anything happens
	Gate  <-chan struct{} // closed or sent to: the call goes on
	Err   error           // the answer
	Work  bool            // with Err: the work is done all the same
}

// Refuse answers an error of a class and does nothing.
func Refuse(c procurement.Class) Step { return Step{Err: procurement.Refuse(c, "the seller says no")} }

// LoseAnswer does the work, and the caller learns nothing.
func LoseAnswer() Step {
	return Step{Err: procurement.Refuse(procurement.Ambiguous, "no answer"), Work: true}
}

// LoseRequest does nothing, and the caller learns nothing either.
func LoseRequest() Step { return Step{Err: procurement.Refuse(procurement.Ambiguous, "no answer")} }

// Purchase is one line of the provider's own books.
type Purchase struct {
	procurement.Intent
	Delivery procurement.Delivery
	Renewals int
	Released bool
	Gone     bool // the seller took it away
	Used     int64
	reads    int
}

// Provider is a seller of exits: 254 dynamic and 254 static addresses of the
// networks for documentation (RFC 5737). It keeps its own books, so a test can
// compare what the service believes it bought with what was sold. It may be
// used by many goroutines.
type Provider struct {
	name     string
	products []catalog.Product

	mu     sync.Mutex
	caps   procurement.Capabilities
	now    func() time.Time
	slow   int // reads until an order is live
	always map[Op]Step
	next   map[Op][]Step
	calls  map[Op]int
	books  []*Purchase // in the order of the sales
	spin   int         // where the next dynamic exit is taken
	offers []procurement.Offer
	ready  bool
	price  map[string]procurement.Quote // by SKU
}

var (
	_ ports.Dynamic = (*Provider)(nil)
	_ ports.Static  = (*Provider)(nil)
)

// NewProvider returns a remote seller of the given products; none: Products.
// Each product is set to be delivered by it.
func NewProvider(name string, products ...catalog.Product) *Provider {
	if len(products) == 0 {
		products = Products()
	}
	products = slices.Clone(products)
	for i := range products {
		products[i].Sources = []procurement.Source{{Provider: name}}
	}
	return &Provider{name: name, products: products, ready: true, now: func() time.Time { return Start },
		caps:   procurement.Capabilities{KeepsOrderKey: true, Renews: true, Cancels: true},
		always: map[Op]Step{}, next: map[Op][]Step{}, calls: map[Op]int{}, price: map[string]procurement.Quote{}}
}

// Name is the name given to NewProvider.
func (p *Provider) Name() string { return p.name }

// Products lists what it sells.
func (p *Provider) Products() []catalog.Product { return p.products }

// Capabilities are what Can and the others set.
func (p *Provider) Capabilities() procurement.Capabilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.caps
}

// Ready is what SetReady said; true at first.
func (p *Provider) Ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

// Offers are what SetOffers said; none at first.
func (p *Provider) Offers(context.Context) ([]procurement.Offer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.offers, nil
}

// Balance is unknown.
func (p *Provider) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// Quote is what SetQuote said; unknown at first.
func (p *Provider) Quote(ctx context.Context, in procurement.Intent) (q procurement.Quote, err error) {
	err = p.play(ctx, Quote, func() error {
		q = p.price[in.SKU]
		return nil
	})
	return q, err
}

// Order delivers; a Key that is known is answered as before when the provider is
// Repeatable or Local, and sold once more when it is not.
func (p *Provider) Order(ctx context.Context, in procurement.Intent) (d procurement.Delivery, err error) {
	err = p.play(ctx, Provision, func() error {
		if p.caps.Idempotent || p.caps.InProcess {
			for _, b := range p.books {
				if b.Key == in.Key && !b.Released {
					d = b.Delivery
					return nil
				}
			}
		}
		ips, err := p.pick(in)
		if err != nil {
			return err
		}
		in.Taken = maps.Clone(in.Taken)
		d = procurement.Delivery{Ref: "ref" + strconv.Itoa(len(p.books)+1), State: procurement.Live, SKU: in.SKU, Location: in.Location,
			Quantity: in.Quantity, CreatedAt: p.now(), IPs: ips}
		if p.caps.KeepsOrderKey {
			d.Label = in.Key
		}
		if p.caps.ViaUpstream {
			d.Access = procurement.Access{User: "user" + d.Ref, Password: "pass" + d.Ref, CapBytes: in.Bytes}
		}
		if in.Type == session.Static {
			d.ExpiresAt = p.now().Add(time.Duration(in.Days) * session.Day)
		}
		if p.slow > 0 {
			d.State = procurement.Pending
		}
		p.books = append(p.books, &Purchase{Intent: in, Delivery: d})
		return nil
	})
	if err != nil {
		return procurement.Delivery{}, err
	}
	return d, nil
}

// Find lists all purchases of the product.
func (p *Provider) Find(ctx context.Context, in procurement.Intent) (list []procurement.Delivery, err error) {
	err = p.play(ctx, Find, func() error {
		for _, b := range p.books {
			if b.Type == in.Type && b.SKU == in.SKU && !b.Released && !b.Gone {
				list = append(list, b.Delivery)
			}
		}
		return nil
	})
	return list, err
}

// Read tells how a purchase stands.
func (p *Provider) Read(ctx context.Context, ref string) (d procurement.Delivery, err error) {
	err = p.play(ctx, Read, func() error {
		b := p.byRef(ref)
		if b == nil {
			return procurement.Refuse(procurement.NotFound, "")
		}
		if b.reads++; b.reads >= p.slow && b.Delivery.State == procurement.Pending {
			b.Delivery.State = procurement.Live
		}
		d = b.Delivery
		return nil
	})
	return d, err
}

// Cancel closes a purchase; one that is not known is no error.
func (p *Provider) Cancel(ctx context.Context, ref string) error {
	return p.play(ctx, Release, func() error {
		if !p.caps.Cancels {
			return procurement.Refuse(procurement.Unsupported, "")
		}
		if b := p.byRef(ref); b != nil {
			b.Released = true
		}
		return nil
	})
}

// Disable changes nothing. It fails with NotFound for an unknown ref.
func (p *Provider) Disable(_ context.Context, ref string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byRef(ref) == nil {
		return procurement.Refuse(procurement.NotFound, "")
	}
	return nil
}

// Usage is what a test wrote into the books.
func (p *Provider) Usage(ctx context.Context, ref string) (u procurement.Usage, err error) {
	err = p.play(ctx, UsageOf, func() error {
		b := p.byRef(ref)
		if b == nil {
			u.Gone = true
			return nil
		}
		u = procurement.Usage{Bytes: b.Used, AsOf: p.now()}
		return nil
	})
	return u, err
}

// Endpoint is a host of this provider, with the token in the user name.
func (p *Provider) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	if t.Protocol == "" {
		t.Protocol = session.HTTP
	}
	for _, c := range t.Location.City {
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return procurement.Endpoint{}, procurement.Refuse(procurement.Invalid, "the city")
		}
	}
	return procurement.Endpoint{Protocol: t.Protocol, Host: p.name + ".test", Port: 7000, User: a.User + "-" + t.Token, Password: a.Password}, nil
}

// NewExit gives another dynamic exit; a chained provider leaves it to the token.
func (p *Provider) NewExit(in procurement.Intent, current session.Exit) (exit session.Exit, err error) {
	err = p.play(context.Background(), Rotate, func() error {
		if p.caps.ViaUpstream {
			return nil
		}
		for exit = current; exit == current; {
			exit = session.Exit{IP: p.dynamic()}
		}
		return nil
	})
	return exit, err
}

// Renew moves the end of a purchase.
func (p *Provider) Renew(ctx context.Context, ref string, in procurement.Intent) (done []procurement.Renewed, err error) {
	err = p.play(ctx, Extend, func() error {
		b := p.byRef(ref)
		if p.caps.InProcess && b == nil {
			return nil
		}
		if b == nil {
			return procurement.Refuse(procurement.NotFound, "")
		}
		b.Renewals++
		b.Delivery.ExpiresAt = b.Delivery.ExpiresAt.Add(time.Duration(in.Days) * session.Day)
		for _, ip := range b.Delivery.IPs {
			done = append(done, procurement.Renewed{Addr: ip.Addr, ExpiresAt: b.Delivery.ExpiresAt})
		}
		return nil
	})
	return done, err
}

// play follows the script of one call; work runs under the lock.
func (p *Provider) play(ctx context.Context, op Op, work func() error) error {
	s := p.step(op)
	if s.Delay > 0 {
		timer := time.NewTimer(s.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return procurement.Refuse(procurement.TimedOut, "the caller left")
		}
	}
	if s.Gate != nil {
		select {
		case <-s.Gate:
		case <-ctx.Done():
			return procurement.Refuse(procurement.TimedOut, "the caller left")
		}
	}
	if ctx.Err() != nil {
		return procurement.Refuse(procurement.TimedOut, "the caller left")
	}
	if s.Err != nil && !s.Work {
		return s.Err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := work(); err != nil {
		return err
	}
	return s.Err
}

func (p *Provider) step(op Op) Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[op]++
	if queue := p.next[op]; len(queue) > 0 {
		p.next[op] = queue[1:]
		return queue[0]
	}
	return p.always[op]
}

func (p *Provider) byRef(ref string) *Purchase {
	for _, b := range p.books {
		if b.Delivery.Ref == ref && !b.Released && !b.Gone {
			return b
		}
	}
	return nil
}

// pick takes exits for an order: a static address is sold once.
func (p *Provider) pick(in procurement.Intent) ([]procurement.IP, error) {
	if in.Type == session.Dynamic {
		if p.caps.ViaUpstream {
			return nil, nil
		}
		return []procurement.IP{{Addr: p.dynamic()}}, nil
	}
	sold := map[netip.Addr]bool{}
	for _, b := range p.books {
		if b.Type == session.Static && !b.Released {
			for _, ip := range b.Delivery.IPs {
				sold[ip.Addr] = true
			}
		}
	}
	var ips []procurement.IP
	for n := 1; n < 255 && len(ips) < in.Quantity; n++ {
		if ip := StaticExit(n); !sold[ip] && !in.Taken[ip.String()] {
			ips = append(ips, procurement.IP{ID: strconv.Itoa(n), Addr: ip})
			if p.caps.ViaUpstream {
				last := &ips[len(ips)-1]
				last.Host, last.HTTPPort, last.User, last.Password = ip.String(), 8080, "user", "pass"
			}
		}
	}
	if len(ips) < in.Quantity {
		return nil, procurement.Refuse(procurement.OutOfStock, "sold out")
	}
	return ips, nil
}

func (p *Provider) dynamic() netip.Addr {
	p.spin = p.spin%254 + 1
	return DynamicExit(p.spin)
}

// DynamicExit is the n-th dynamic address, 1 to 254: 203.0.113.n.
func DynamicExit(n int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, byte(n)}) }

// StaticExit is the n-th static address, 1 to 254: 198.51.100.n.
func StaticExit(n int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}) }
