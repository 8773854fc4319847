package fake

import (
	"slices"
	"time"

	"agentproxy/domain/procurement"
)

// SetLocal says whether the provider is called inside the unit of work.
func (p *Provider) SetLocal(local bool) {
	p.Can(func(c *procurement.Capabilities) { c.InProcess, c.KeepsOrderKey = local, !local })
}

// Can changes what the provider can do.
func (p *Provider) Can(change func(*procurement.Capabilities)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.caps)
}

// SetClock sets the seller's clock.
func (p *Provider) SetClock(now func() time.Time) { p.now = now }

// SetSlow delivers after so many reads.
func (p *Provider) SetSlow(reads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow, p.caps.Async = reads, reads > 0
}

// SetReady says whether the provider's breaker is closed.
func (p *Provider) SetReady(ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = ready
}

// SetOffers sets what the provider says that it has.
func (p *Provider) SetOffers(offers ...procurement.Offer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offers = offers
}

// SetQuote sets what something costs at the seller.
func (p *Provider) SetQuote(sku string, q procurement.Quote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.price[sku] = q
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

// Books returns every purchase in the order of the sales, released ones included.
func (p *Provider) Books() []Purchase {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Purchase
	for _, b := range p.books {
		out = append(out, *b)
	}
	return out
}

// Of returns the purchases for a session.
func (p *Provider) Of(sessionID string) (list []Purchase) {
	for _, b := range p.Books() {
		if b.SessionID == sessionID {
			list = append(list, b)
		}
	}
	return list
}

// Live lists the sessions of purchases that were not released, sorted: one that
// was bought for twice is there twice.
func (p *Provider) Live() []string {
	var live []string
	for _, b := range p.Books() {
		if !b.Released && !b.Gone {
			live = append(live, b.SessionID)
		}
	}
	slices.Sort(live)
	return live
}

// Change alters the books of a session's purchases.
func (p *Provider) Change(sessionID string, change func(*Purchase)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.books {
		if b.SessionID == sessionID {
			change(b)
		}
	}
}
