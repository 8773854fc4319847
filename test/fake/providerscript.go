package fake

import (
	"slices"
	"time"

	"agentproxy/domain/procurement"
)

// SetInProcess sets whether the provider is called inside the transaction.
func (p *Provider) SetInProcess(local bool) {
	p.Can(func(c *procurement.Capabilities) { c.InProcess, c.KeepsOrderKey = local, !local })
}

// Can changes the capabilities of the provider.
func (p *Provider) Can(change func(*procurement.Capabilities)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.caps)
}

// SetClock sets the seller's clock.
func (p *Provider) SetClock(now func() time.Time) { p.now = now }

// SetAsync delivers after the given number of reads; 0 delivers at once.
func (p *Provider) SetAsync(reads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow, p.caps.Async = reads, reads > 0
}

// SetReady sets whether the provider's circuit breaker is closed.
func (p *Provider) SetReady(ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = ready
}

// SetOffers sets the offers of the provider.
func (p *Provider) SetOffers(offers ...procurement.Offer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offers = offers
}

// SetQuote sets the quote for an SKU.
func (p *Provider) SetQuote(sku string, q procurement.Quote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.price[sku] = q
}

// Always sets the Step of every call for which Next has none.
func (p *Provider) Always(op Op, s Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.always[op] = s
}

// Next adds the Steps of the next calls.
func (p *Provider) Next(op Op, steps ...Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[op] = append(p.next[op], steps...)
}

// Calls returns the number of calls of an operation, including failed ones.
func (p *Provider) Calls(op Op) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[op]
}

// Sales returns every purchase in the order of the sales, including released ones.
func (p *Provider) Sales() []Purchase {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Purchase
	for _, b := range p.sales {
		out = append(out, *b)
	}
	return out
}

// Of returns the purchases of a session.
func (p *Provider) Of(sessionID string) (list []Purchase) {
	for _, b := range p.Sales() {
		if b.SessionID == sessionID {
			list = append(list, b)
		}
	}
	return list
}

// Live returns the sessions of purchases that were not released, sorted. A session is
// listed once for each purchase.
func (p *Provider) Live() []string {
	var live []string
	for _, b := range p.Sales() {
		if !b.Released && !b.Gone {
			live = append(live, b.SessionID)
		}
	}
	slices.Sort(live)
	return live
}

// Change changes the purchases of a session.
func (p *Provider) Change(sessionID string, change func(*Purchase)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.sales {
		if b.SessionID == sessionID {
			change(b)
		}
	}
}
