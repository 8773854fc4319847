package fake

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/domain/supply"
	"agentproxy/ports"
)

// Op is a call of a provider.
type Op string

// The calls that can be scripted.
const (
	Provision Op = "provision"
	Rotate    Op = "rotate"
	Extend    Op = "extend"
	Release   Op = "release"
)

// Step says how a provider behaves in one call: it waits, does the work or does
// not, and answers. The zero Step does the work at once and says so.
type Step struct {
	Delay time.Duration   // before anything happens
	Gate  <-chan struct{} // closed or sent to: the call goes on
	Err   error           // the answer
	Work  bool            // with Err: the work is done all the same
}

// Refuse answers an error and does nothing.
func Refuse(err error) Step { return Step{Err: err} }

// LoseAnswer does the work, and the caller learns ports.ErrAmbiguous.
func LoseAnswer() Step { return Step{Err: ports.ErrAmbiguous, Work: true} }

// LoseRequest does nothing, and the caller learns ports.ErrAmbiguous too.
func LoseRequest() Step { return Step{Err: ports.ErrAmbiguous} }

// Purchase is one line of the provider's own books.
type Purchase struct {
	ports.OldOrder
	Exits     []session.Exit
	Until     time.Time // the last Extend; zero: none
	Rotations int
	Released  bool
}

// Provider is a seller of exits: 254 dynamic and 254 static addresses of the
// networks for documentation (RFC 5737). It keeps its own books, so a test can
// compare what the service believes it bought with what was sold. It may be
// used by many goroutines.
type Provider struct {
	name     string
	products []catalog.Product

	mu     sync.Mutex
	local  bool
	always map[Op]Step
	next   map[Op][]Step
	calls  map[Op]int
	books  map[string]*Purchase
	spin   int // where the next dynamic exit is taken
}

var _ ports.OldProvider = (*Provider)(nil)

// NewProvider returns a remote seller of the given products; none: Products.
// Each product is set to be delivered by it.
func NewProvider(name string, products ...catalog.Product) *Provider {
	if len(products) == 0 {
		products = Products()
	}
	products = slices.Clone(products)
	for i := range products {
		products[i].Provider, products[i].Sources = name, []supply.Source{{Provider: name}}
	}
	return &Provider{name: name, products: products,
		always: map[Op]Step{}, next: map[Op][]Step{}, calls: map[Op]int{}, books: map[string]*Purchase{}}
}

// SetLocal says whether the provider is called inside the unit of work.
func (p *Provider) SetLocal(local bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.local = local
}

// Always sets how the provider behaves in every call that has no Next.
func (p *Provider) Always(op Op, s Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.always[op] = s
}

// Next adds how the provider behaves in the next calls, one Step each.
func (p *Provider) Next(op Op, steps ...Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[op] = append(p.next[op], steps...)
}

// Calls is how often an operation was called, refused calls included.
func (p *Provider) Calls(op Op) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[op]
}

// Books returns every purchase by its Ref, released ones included.
func (p *Provider) Books() map[string]Purchase {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]Purchase, len(p.books))
	for ref, b := range p.books {
		out[ref] = *b
	}
	return out
}

// Live lists the Refs of purchases that were not released, sorted.
func (p *Provider) Live() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	live := slices.Sorted(maps.Keys(p.books))
	return slices.DeleteFunc(live, func(ref string) bool { return p.books[ref].Released })
}

// Name is the name given to NewProvider.
func (p *Provider) Name() string { return p.name }

// Products lists what it sells.
func (p *Provider) Products() []catalog.Product { return p.products }

// Local is what SetLocal said; false at first.
func (p *Provider) Local() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.local
}

// Provision delivers; a Ref that is known is answered as before.
func (p *Provider) Provision(ctx context.Context, o ports.OldOrder) (exits []session.Exit, err error) {
	err = p.play(ctx, Provision, func() error {
		if b := p.books[o.Ref]; b != nil {
			exits = b.Exits
			return nil
		}
		if exits, err = p.pick(o); err != nil {
			return err
		}
		o.Taken = maps.Clone(o.Taken)
		p.books[o.Ref] = &Purchase{OldOrder: o, Exits: exits}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return exits, nil
}

// Rotate gives another dynamic exit. A session that was not bought here is
// ports.ErrProvider.
func (p *Provider) Rotate(ctx context.Context, o ports.OldOrder, current session.Exit) (exit session.Exit, err error) {
	err = p.play(ctx, Rotate, func() error {
		b, err := p.live(o.Ref)
		if err != nil {
			return err
		}
		for exit = current; exit == current; {
			exit = p.dynamic()
		}
		b.Exits, b.Rotations = []session.Exit{exit}, b.Rotations+1
		return nil
	})
	if err != nil {
		return session.Exit{}, err
	}
	return exit, nil
}

// Extend writes the new end into the books.
func (p *Provider) Extend(ctx context.Context, o ports.OldOrder, until time.Time) error {
	return p.play(ctx, Extend, func() error {
		b, err := p.live(o.Ref)
		if err == nil {
			b.Until = until
		}
		return err
	})
}

// Release closes a purchase; one that is not known is no error.
func (p *Provider) Release(ctx context.Context, ref string) error {
	return p.play(ctx, Release, func() error {
		if b := p.books[ref]; b != nil {
			b.Released = true
		}
		return nil
	})
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
			return fmt.Errorf("%s: %w", op, ports.ErrTimeout)
		}
	}
	if s.Gate != nil {
		select {
		case <-s.Gate:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", op, ports.ErrTimeout)
		}
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

func (p *Provider) live(ref string) (*Purchase, error) {
	if b := p.books[ref]; b != nil && !b.Released {
		return b, nil
	}
	return nil, ports.ErrProvider.Msgf("the seller does not know the order %s", ref)
}

// pick takes exits for an order: a static address is sold once.
func (p *Provider) pick(o ports.OldOrder) ([]session.Exit, error) {
	if o.Product.Type == session.Dynamic {
		return []session.Exit{p.dynamic()}, nil
	}
	sold := map[netip.Addr]bool{}
	for _, b := range p.books {
		if b.Product.Type == session.Static && !b.Released {
			for _, e := range b.Exits {
				sold[e.IP] = true
			}
		}
	}
	var exits []session.Exit
	for n := 1; n < 255 && len(exits) < o.Quantity; n++ {
		ip := StaticExit(n)
		if !sold[ip] && !o.Taken[ip.String()] {
			exits = append(exits, session.Exit{IP: ip})
		}
	}
	if len(exits) < o.Quantity {
		return nil, catalog.ErrOutOfStock
	}
	return exits, nil
}

func (p *Provider) dynamic() session.Exit {
	p.spin = p.spin%254 + 1
	return session.Exit{IP: DynamicExit(p.spin)}
}

// DynamicExit is the n-th dynamic address, 1 to 254: 203.0.113.n.
func DynamicExit(n int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, byte(n)}) }

// StaticExit is the n-th static address, 1 to 254: 198.51.100.n.
func StaticExit(n int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}) }
