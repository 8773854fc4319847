package proxycheap

import (
	"context"
	"net/http"
	"time"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
)

// aheadBy is the difference of ends from which on an address counts as renewed by an
// earlier call that did not reach all addresses of the order.
const aheadBy = 14 * 24 * time.Hour

// Renew extends each address by its own call and reads the new ends afterwards, because
// the answers have no documented shape. It stops at the first call whose outcome is
// unknown; the addresses after it get the error Temporary.
//
// Addresses of an order end together unless an earlier renewal reached only some of
// them. Those are skipped, so that repeating a partial renewal completes it.
func (p *Provider) Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error) {
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

// extend renews one address under a request id of its own.
func (p *Provider) extend(ctx context.Context, id string, months int, key string) error {
	return p.api.CallWith(ctx, rest.Once, http.MethodPost, "/proxies/"+id+"/extend-period", rest.RequestID(key+"/"+id),
		map[string]any{"periodInMonths": months}, nil)
}

// confirm reads the ends of the addresses whose renewal was sent. An address whose end
// has not moved gets the error Ambiguous, whatever the answer was.
func (p *Provider) confirm(ctx context.Context, ref string, done []procurement.Renewed, asked []bool) {
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
			done[i].Err = procurement.Refuse(procurement.Ambiguous, "the renewal was accepted, and the order shows no new end")
		}
	}
}

// renewed returns done, or the first error if every address was refused.
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
