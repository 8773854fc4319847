package proxyseller

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"agentproxy/domain/procurement"
)

// disableAutoRenewal switches automatic renewal off where it is on. Orders have no field
// for it, and a renewal switches it on again with new ids, so this is called whenever
// addresses are read.
func (p *addressProvider) disableAutoRenewal(ctx context.Context, items []address) error {
	var ids []string
	for _, i := range items {
		if i.AutoRenew != "N" {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return p.change(ctx, http.MethodPost, "/autoprolong/disable/"+p.section, map[string]any{"ids": ids}, nil)
}

// renewalBody is the body of prolong/calc and prolong/make.
type renewalBody struct {
	IDs     []string `json:"ids"`
	Period  string   `json:"periodId"`
	Coupon  string   `json:"coupon"`
	Payment string   `json:"paymentCode"`
}

// Renew extends all addresses of an order by one call and reads their new ends, because
// the answer may be a success without an order. It
// fails with Ambiguous if none has moved, or they cannot be read; Read returns them
// later.
func (p *addressProvider) Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error) {
	period, err := periodOf(in)
	if err != nil {
		return nil, err
	}
	items, err := p.items(ctx, ref)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, procurement.Refuse(procurement.NotFound, "no such order")
	}
	body := renewalBody{Period: period, Payment: "balance"}
	before := map[netip.Addr]time.Time{}
	for _, i := range items {
		addr, bad := netip.ParseAddr(i.Addr)
		end, odd := parseDay(i.End)
		if bad != nil || odd != nil || i.ID == "" {
			return nil, unexpected(procurement.Temporary)
		}
		if i.CanProlong != nil && !*i.CanProlong {
			return nil, procurement.Refuse(procurement.Conflict, "the seller does not renew "+addr.String())
		}
		body.IDs = append(body.IDs, i.ID)
		before[addr] = end
	}
	var b bill
	if err := p.query(ctx, "/prolong/calc/"+p.section, body, &b); err != nil {
		return nil, err
	}
	cost, err := p.cost(b, len(items))
	if err != nil {
		return nil, err
	}
	if in.MaxCost > 0 && cost > in.MaxCost {
		return nil, procurement.Refuse(procurement.Conflict, "the renewal costs "+cost.String()+", more than "+
			in.MaxCost.String())
	}
	b = bill{}
	if err := p.spend(ctx, in.Key, "/prolong/make/"+p.section, body, &b); err != nil {
		return nil, err
	}
	return p.renewed(ctx, ref, before)
}

// renewed compares the ends of an order's addresses with those before the renewal.
func (p *addressProvider) renewed(ctx context.Context, ref string,
	before map[netip.Addr]time.Time) ([]procurement.Renewed, error) {
	items, err := p.items(ctx, ref)
	if err != nil {
		return nil, procurement.Refuse(procurement.Ambiguous, "renewed, and the new end could not be read")
	}
	if err := p.disableAutoRenewal(ctx, items); err != nil {
		p.log.Warn("addresses may renew themselves until they are read again", "provider", p.name, "ref", ref, "err", err)
	}
	after := map[netip.Addr]time.Time{}
	for _, i := range items {
		if addr, err := netip.ParseAddr(i.Addr); err == nil {
			after[addr], _ = parseDay(i.End)
		}
	}
	var done []procurement.Renewed
	moved := false
	for _, addr := range slices.SortedFunc(maps.Keys(before), netip.Addr.Compare) {
		r := procurement.Renewed{Addr: addr, ExpiresAt: after[addr]}
		if r.ExpiresAt.After(before[addr]) {
			moved = true
		} else {
			r.ExpiresAt, r.Err = before[addr], procurement.Refuse(procurement.Ambiguous, "paid, and its end has not moved")
		}
		done = append(done, r)
	}
	if !moved {
		return nil, procurement.Refuse(procurement.Ambiguous, "renewed, and no end has moved yet")
	}
	return done, nil
}
