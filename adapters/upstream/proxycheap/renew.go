package upstream

import (
	"context"
	"net/http"
	"time"

	"agentproxy/domain/procurement"
)

// aheadBy is how much later an address of an order ends than the first one when
// an earlier renewal reached only it.
const aheadBy = 14 * 24 * time.Hour

// Renew extends each address by a call of its own. It stops at the first call
// whose outcome is unknown: what was not sent then is Temporary. What the calls
// brought is read from the addresses afterwards, because their answers have no
// documented shape.
//
// Addresses of one order end together, unless an earlier renewal reached only
// some of them. Those are ahead, and are not extended again: repeating a renewal
// that was done in part does the rest.
func (p *proxyCheap) Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error) {
	months, ok := monthsOf(in.Days)
	if !ok {
		return nil, procurement.Refuse(procurement.Invalid, "only months are sold, of 30 days each")
	}
	before, err := p.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	if before.State == procurement.Pending {
		return nil, procurement.Refuse(procurement.Conflict, "the order is not delivered yet")
	}
	if len(before.IPs) == 0 {
		return nil, procurement.Refuse(procurement.NotFound, "the order has ended")
	}
	done := make([]procurement.Renewed, len(before.IPs))
	asked := make([]bool, len(before.IPs)) // sent, and not refused
	stopped := false
	for i, ip := range before.IPs {
		done[i] = procurement.Renewed{Addr: ip.Addr, ExpiresAt: ip.ExpiresAt}
		switch {
		case ip.ExpiresAt.Sub(before.ExpiresAt) >= aheadBy:
			continue
		case stopped:
			done[i].Err = procurement.Refuse(procurement.Temporary, "not sent: the renewal of another address is unknown")
			continue
		}
		done[i].Err = p.extend(ctx, ip.ID, months, in.Key)
		stopped = procurement.ClassOf(done[i].Err) == procurement.Ambiguous
		asked[i] = done[i].Err == nil || stopped
	}
	p.confirm(ctx, ref, done, asked)
	return renewed(done)
}

// extend renews one address, by a key of its own.
func (p *proxyCheap) extend(ctx context.Context, id string, months int, key string) error {
	return p.api.callWith(ctx, once, http.MethodPost, "/proxies/"+id+"/extend-period", intentHeader(key+"/"+id),
		map[string]any{"periodInMonths": months}, nil)
}

// confirm reads the ends of the addresses that were asked for. One that did not
// move is Ambiguous, whatever was answered.
func (p *proxyCheap) confirm(ctx context.Context, ref string, done []procurement.Renewed, asked []bool) {
	ends := map[string]time.Time{}
	if after, err := p.Read(ctx, ref); err == nil {
		for _, ip := range after.IPs {
			ends[ip.Addr.String()] = ip.ExpiresAt
		}
	}
	for i := range done {
		if !asked[i] {
			continue
		}
		if end := ends[done[i].Addr.String()]; end.After(done[i].ExpiresAt) {
			done[i].ExpiresAt, done[i].Err = end, nil
		} else if done[i].Err == nil {
			done[i].Err = procurement.Refuse(procurement.Ambiguous, "the renewal was accepted, and its new end is not told")
		}
	}
}

// renewed is an error when nothing was done: the first one. Ambiguous is for each
// address to tell.
func renewed(done []procurement.Renewed) ([]procurement.Renewed, error) {
	var first error
	for _, r := range done {
		if c := procurement.ClassOf(r.Err); c == "" || c == procurement.Ambiguous {
			return done, nil
		}
		if first == nil {
			first = r.Err
		}
	}
	return nil, first
}
