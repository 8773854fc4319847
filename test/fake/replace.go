package fake

import (
	"context"
	"slices"

	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// The methods of a Replacer that can be scripted.
const (
	QuoteReplace Op = "quote replacement"
	Exchange     Op = "replace"
)

var _ ports.Replacer = (*Provider)(nil)

// ChargeReplacements sets what the provider takes for a replacement.
func (p *Provider) ChargeReplacements(q procurement.Quote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replacements = q
}

// ReplaceLater lets replacements be accepted, and done by FinishReplacements.
func (p *Provider) ReplaceLater() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later = true
}

// FinishReplacements does the replacements that were accepted.
func (p *Provider) FinishReplacements() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, do := range p.accepted {
		do()
	}
	p.accepted = nil
}

// QuoteReplacement returns what ChargeReplacements has set.
func (p *Provider) QuoteReplacement(ctx context.Context, ref string, _ procurement.Replacement) (q procurement.Quote, err error) {
	err = p.play(ctx, QuoteReplace, func() error {
		q = p.replacements
		if p.byRef(ref) == nil {
			return procurement.Refuse(procurement.NotFound, "")
		}
		return nil
	})
	return q, err
}

// Replace gives an order the next free address in place of one.
func (p *Provider) Replace(ctx context.Context, ref string, in procurement.Replacement) error {
	return p.play(ctx, Exchange, func() error {
		b := p.byRef(ref)
		if b == nil {
			return procurement.Refuse(procurement.NotFound, "")
		}
		i := slices.IndexFunc(b.Delivery.IPs, func(ip procurement.IP) bool { return ip.Addr == in.Addr })
		if i < 0 {
			return procurement.Refuse(procurement.NotFound, "the order has no such address")
		}
		do := func() {
			one := b.Intent
			one.Quantity = 1
			if ips, err := p.pick(one); err == nil {
				b.Delivery.IPs = slices.Clone(b.Delivery.IPs)
				b.Delivery.IPs[i] = ips[0]
			}
		}
		if p.later {
			p.accepted = append(p.accepted, do)
			return nil
		}
		do()
		return nil
	})
}
