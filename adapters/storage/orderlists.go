package storage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// ofSessionAtMost is how many orders of a kind are listed of a session, so that
// one which is renewed for years is still read at once.
const ofSessionAtMost = 100

// ofSession is two ranges of one index.
var ofSession = `SELECT ` + upstreamSelect + ` FROM upstream_orders WHERE seq IN (
	SELECT seq FROM (SELECT seq FROM upstream_orders WHERE session_id = ?1 AND kind = 'purchase'
		ORDER BY seq DESC LIMIT ?2) purchases UNION ALL
	SELECT seq FROM (SELECT seq FROM upstream_orders WHERE session_id = ?1 AND kind = 'renewal'
		ORDER BY seq DESC LIMIT ?2) renewals)
	ORDER BY seq DESC`

func (r orders) Of(ctx context.Context, sessionID string) ([]procurement.Order, error) {
	list, err := listed(ctx, r.tx, 0, scanUpstreamOrder, ofSession+r.lock("upstream_orders"), sessionID, ofSessionAtMost)
	if err != nil {
		return nil, fmt.Errorf("list upstream orders of %s: %w", sessionID, err)
	}
	return list, nil
}

// undecided are the states of an open order. The queries repeat the words of the
// partial index, or it is not used.
const undecided = `status IN ('planned', 'sent', 'unknown')`

// upstreamWhere are the conditions of a list of orders, from parameter 1 on.
func upstreamWhere(f ports.OrderFilter) (where string, args []any) {
	where = `1 = 1`
	add := func(column, value string) {
		if value != "" {
			args = append(args, value)
			where += ` AND ` + column + ` = ?` + strconv.Itoa(len(args))
		}
	}
	add("status", string(f.Status))
	add("provider", f.Provider)
	if f.Frozen {
		where += ` AND frozen_at > 0 AND ` + undecided
	}
	return where, args
}

// pageOfUpstream walks the pages before within an index. Its last two parameters
// are the limit and the offset.
func pageOfUpstream(where string, args int) string {
	return `SELECT ` + upstreamSelect + ` FROM upstream_orders WHERE seq IN (SELECT seq FROM upstream_orders WHERE ` +
		where + ` ORDER BY seq DESC LIMIT ?` + strconv.Itoa(args+1) + ` OFFSET ?` + strconv.Itoa(args+2) +
		`) ORDER BY seq DESC`
}

func (r orders) List(
	ctx context.Context, f ports.OrderFilter, page domain.Page,
) (domain.List[procurement.Order], error) {
	list := domain.List[procurement.Order]{Page: page}
	where, args := upstreamWhere(f)
	err := r.row(`SELECT COUNT(*) FROM upstream_orders WHERE `+where, args...).Scan(&list.Total)
	if err == nil && list.Total > page.Offset() {
		list.Items, err = listed(ctx, r.tx, page.Size, scanUpstreamOrder,
			pageOfUpstream(where, len(args))+r.lock("upstream_orders"), append(args, page.Size, page.Offset())...)
	}
	if err != nil {
		return list, fmt.Errorf("list upstream orders: %w", err)
	}
	return list, nil
}

const upstreamDue = `SELECT id FROM upstream_orders WHERE next_at > 0 AND next_at <= ?1 ORDER BY next_at, seq LIMIT ?2`

func (r orders) Due(ctx context.Context, now time.Time, limit int) ([]string, error) {
	ids, err := r.texts(ctx, upstreamDue, micros(now), limit)
	if err != nil {
		return nil, fmt.Errorf("list upstream orders that are due: %w", err)
	}
	return ids, nil
}

const rivals = `SELECT COUNT(*), COALESCE(SUM(CASE WHEN (sku = ?3 OR sku = '' OR ?3 = '')
	AND (country = ?4 OR country = '' OR ?4 = '') THEN 1 ELSE 0 END), 0)
	FROM upstream_orders WHERE provider = ?1 AND id <> ?2 AND status <> 'planned' AND frozen_at = 0 AND ` + undecided

func (r orders) Rivals(_ context.Context, o procurement.Order) (open, like int, err error) {
	// Who asks wants to know that there is none, so it is the provider that is locked.
	r.serialize("orders", o.Provider)
	err = r.row(rivals, o.Provider, o.ID, o.Intent.SKU, o.Intent.Location.Country).Scan(&open, &like)
	if err != nil {
		return 0, 0, fmt.Errorf("count rivals of upstream order %s: %w", o.ID, err)
	}
	return open, like, nil
}

// knownAtOnce is how many refs one query asks for.
const knownAtOnce = 256

// knownRefs is the query for that many; list is what in made for it.
func knownRefs(list string) string {
	return `SELECT ref FROM upstream_orders WHERE provider = ?1 AND ref <> '' AND ref IN ` + list
}

// Known locks nothing: a ref that an order has stays its own.
func (r orders) Known(ctx context.Context, provider string, refs []string) (map[string]bool, error) {
	known := map[string]bool{}
	for len(refs) > 0 {
		n := min(len(refs), knownAtOnce)
		list, size := in(2, n)
		args := append(make([]any, 0, size+1), provider)
		for i := range size {
			args = append(args, refs[min(i, n-1)])
		}
		refs = refs[n:]
		some, err := r.texts(ctx, knownRefs(list), args...)
		if err != nil {
			return nil, fmt.Errorf("look for known refs of %s: %w", provider, err)
		}
		for _, ref := range some {
			known[ref] = true
		}
	}
	return known, nil
}

const spent = `SELECT CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM upstream_orders
	WHERE provider = ?1 AND status = 'confirmed' AND sent_at >= ?2`

func (r orders) Spent(_ context.Context, provider string, since time.Time) (sum domain.Money, err error) {
	if err := r.row(spent, provider, micros(since)).Scan(&sum); err != nil {
		return 0, fmt.Errorf("sum what was spent at %s: %w", provider, err)
	}
	return sum, nil
}

const tallyUpstream = `SELECT COUNT(*), COALESCE(SUM(CASE WHEN frozen_at > 0 THEN 1 ELSE 0 END), 0)
	FROM upstream_orders WHERE ` + undecided

func (r orders) Tally(context.Context) (open, frozen int, err error) {
	if err := r.row(tallyUpstream).Scan(&open, &frozen); err != nil {
		return 0, 0, fmt.Errorf("count open upstream orders: %w", err)
	}
	return open, frozen, nil
}
