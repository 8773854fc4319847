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

// Op is a method of a provider.
type Op string

// The methods that can be scripted.
const (
	Quote     Op = "quote"
	Provision Op = "order"
	Find      Op = "find"
	Read      Op = "read"
	Rotate    Op = "new exit"
	Extend    Op = "renew"
	Release   Op = "cancel"
	UsageOf   Op = "usage"
	Disable   Op = "disable"
	List      Op = "list"
)

// Step defines one call of a provider: it waits, does the work or does not, and returns
// Err. The zero Step does the work at once and succeeds.
type Step struct {
	Delay time.Duration   // before the call
	Gate  <-chan struct{} // the call continues once it is closed or sent to
	Err   error           // the result
	Work  bool            // do the work although Err is set
}

// Refuse returns a Step that does nothing and fails with an error of a class.
func Refuse(c procurement.Class) Step { return Step{Err: procurement.Refuse(c, "the seller refuses")} }

// LoseAnswer returns a Step that does the work and fails with Ambiguous.
func LoseAnswer() Step {
	return Step{Err: procurement.Refuse(procurement.Ambiguous, "no answer"), Work: true}
}

// LoseRequest returns a Step that does nothing and fails with Ambiguous.
func LoseRequest() Step { return Step{Err: procurement.Refuse(procurement.Ambiguous, "no answer")} }

// Purchase is a sale as the provider recorded it.
type Purchase struct {
	procurement.Intent
	Delivery procurement.Delivery
	Renewals int
	Released bool
	Disabled bool
	Gone     bool // removed by the seller
	Used     int64
	reads    int
}

// Provider is a seller of exits: 254 dynamic and 254 static addresses of the networks for
// documentation (RFC 5737). It records its sales, so that a test can compare them with the
// orders of the service. It may be used by many goroutines.
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
	sales  []*Purchase // in the order of the sales
	spin   int         // number of the last dynamic exit
	offers []procurement.Offer
	ready  bool
	price  map[string]procurement.Quote // by SKU

	replacements procurement.Quote
	later        bool
	accepted     []func()
}

var (
	_ ports.Dynamic = (*Provider)(nil)
	_ ports.Static  = (*Provider)(nil)
	_ ports.Lister  = (*Provider)(nil)
)

// NewProvider returns a remote seller of the given products, or of Products without any.
// It becomes the only source of each product.
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

// Name returns the name given to NewProvider.
func (p *Provider) Name() string { return p.name }

// Products returns the products that it sells.
func (p *Provider) Products() []catalog.Product { return p.products }

// Capabilities returns what Can and the setters set.
func (p *Provider) Capabilities() procurement.Capabilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.caps
}

// Ready returns what SetReady set; it is true at first.
func (p *Provider) Ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

// Offers returns what SetOffers set; there are none at first.
func (p *Provider) Offers(context.Context) ([]procurement.Offer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.offers, nil
}

// Balance returns an unknown balance.
func (p *Provider) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// Quote returns what SetQuote set; it is unknown at first.
func (p *Provider) Quote(ctx context.Context, in procurement.Intent) (q procurement.Quote, err error) {
	err = p.play(ctx, Quote, func() error {
		q = p.price[in.SKU]
		return nil
	})
	return q, err
}

// Order delivers. It returns the first delivery again for a known Key if the provider is
// Idempotent or InProcess, and sells once more if it is not.
func (p *Provider) Order(ctx context.Context, in procurement.Intent) (d procurement.Delivery, err error) {
	err = p.play(ctx, Provision, func() error {
		if p.caps.Idempotent || p.caps.InProcess {
			for _, b := range p.sales {
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
		d = procurement.Delivery{Ref: "ref" + strconv.Itoa(len(p.sales)+1), State: procurement.Live, SKU: in.SKU, Location: in.Location,
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
		p.sales = append(p.sales, &Purchase{Intent: in, Delivery: d})
		return nil
	})
	if err != nil {
		return procurement.Delivery{}, err
	}
	return d, nil
}

// Find returns all purchases of the product.
func (p *Provider) Find(ctx context.Context, in procurement.Intent) (list []procurement.Delivery, err error) {
	err = p.play(ctx, Find, func() error {
		for _, b := range p.sales {
			if b.Type == in.Type && b.SKU == in.SKU && !b.Released && !b.Gone {
				list = append(list, b.Delivery)
			}
		}
		return nil
	})
	return list, err
}

// List returns all purchases that were not released.
func (p *Provider) List(ctx context.Context) (list []procurement.Delivery, err error) {
	err = p.play(ctx, List, func() error {
		for _, b := range p.sales {
			if !b.Released && !b.Gone {
				list = append(list, b.Delivery)
			}
		}
		return nil
	})
	return list, err
}

// Read returns a purchase.
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

// Cancel releases a purchase. An unknown one is no error.
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

// Disable sets the field Disabled of a purchase. It fails with NotFound for an unknown
// ref.
func (p *Provider) Disable(ctx context.Context, ref string) error {
	return p.play(ctx, Disable, func() error {
		b := p.byRef(ref)
		if b == nil {
			return procurement.Refuse(procurement.NotFound, "")
		}
		b.Disabled = true
		return nil
	})
}

// Usage returns the field Used of a purchase.
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

// Endpoint returns a host of this provider, with the token in the user name.
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

// NewExit returns another dynamic exit, or the zero Exit if the provider is ViaUpstream.
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

// play follows the script of one call and runs work under the lock.
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
	for _, b := range p.sales {
		if b.Delivery.Ref == ref && !b.Released && !b.Gone {
			return b
		}
	}
	return nil
}

// pick returns exits for an order. A static address is sold once.
func (p *Provider) pick(in procurement.Intent) ([]procurement.IP, error) {
	if in.Type == session.Dynamic {
		if p.caps.ViaUpstream {
			return nil, nil
		}
		return []procurement.IP{{Addr: p.dynamic()}}, nil
	}
	sold := map[netip.Addr]bool{}
	for _, b := range p.sales {
		if b.Type == session.Static && !b.Released {
			for _, ip := range b.Delivery.IPs {
				sold[ip.Addr] = true
			}
		}
	}
	var ips []procurement.IP
	for n := 1; n < 255 && len(ips) < in.Quantity; n++ {
		if ip := StaticExit(n); !sold[ip] && !in.Taken[ip.String()] && in.Allows(ip) {
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

// DynamicExit returns the n-th dynamic address, 1 to 254: 203.0.113.n.
func DynamicExit(n int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, byte(n)}) }

// StaticExit returns the n-th static address, 1 to 254: 198.51.100.n.
func StaticExit(n int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}) }
