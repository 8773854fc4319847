package procurement

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/fair"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// ofSessionAtMost is how many orders of a kind are listed of a session, so that a session that is
// renewed for years is still read fast.
const ofSessionAtMost = 100

// isOfSession reads three ranges of one index.
const isOfSession = `seq IN (
	SELECT seq FROM (SELECT seq FROM upstream_orders WHERE session_id = @session AND kind = 'purchase'
		ORDER BY seq DESC LIMIT @most) purchases UNION ALL
	SELECT seq FROM (SELECT seq FROM upstream_orders WHERE session_id = @session AND kind = 'renewal'
		ORDER BY seq DESC LIMIT @most) renewals UNION ALL
	SELECT seq FROM (SELECT seq FROM upstream_orders WHERE session_id = @session AND kind = 'replacement'
		ORDER BY seq DESC LIMIT @most) replacements)`

func (r orders) Of(ctx context.Context, sessionID string) ([]procurement.Order, error) {
	list, err := ordersOf(r.Locked(ctx).Order("seq DESC").
		Where(isOfSession, map[string]any{"session": sessionID, "most": ofSessionAtMost}))
	return list, work.Wrap("list upstream orders of "+sessionID, err)
}

func ordersOf(query *gorm.DB) ([]procurement.Order, error) {
	rows, err := work.All(query, func(r orderRow) orderRow { return r })
	if err != nil {
		return nil, err
	}
	return fromOrderRows(rows)
}

func fromOrderRows(rows []orderRow) ([]procurement.Order, error) {
	list := make([]procurement.Order, len(rows))
	for i, row := range rows {
		var err error
		if list[i], err = fromOrderRow(row); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// isUndecided holds for an open order. It repeats the text of the partial index, which is not used
// otherwise.
const isUndecided = `status IN ('planned', 'sent', 'unknown')`

func (r orders) List(
	ctx context.Context, f ports.OrderFilter, page domain.Page,
) (domain.List[procurement.Order], error) {
	rows, err := work.PageOf(ctx, r.Unit, r.Locked(ctx), page, func(r orderRow) orderRow { return r },
		func(db *gorm.DB) *gorm.DB {
			// A struct of conditions leaves its zero fields out.
			of := orderRow{Plan: orderPlan{Provider: f.Provider}, Progress: orderProgress{Status: f.Status}}
			db = db.Where(&of)
			if f.Frozen {
				db = db.Where("frozen_at > 0 AND " + isUndecided)
			}
			return db
		})
	list := domain.List[procurement.Order]{Page: page, Total: rows.Total}
	if err == nil && len(rows.Items) > 0 {
		list.Items, err = fromOrderRows(rows.Items)
	}
	return list, work.Wrap("list upstream orders", err)
}

// listDue numbers what is due of each agent at each provider, and then of each provider.
const listDue = `SELECT id, session_id, provider, agent FROM (
	SELECT id, session_id, provider, agent, ROW_NUMBER() OVER (PARTITION BY provider ORDER BY n, next_at, seq) AS place
	FROM (SELECT o.id, o.session_id, o.provider, COALESCE(s.agent_id, '') AS agent, o.next_at, o.seq,
			ROW_NUMBER() OVER (PARTITION BY o.provider, s.agent_id ORDER BY o.next_at, o.seq) AS n
		FROM upstream_orders o LEFT JOIN sessions s ON s.id = o.session_id WHERE o.next_at > 0 AND o.next_at <= ?1) due
	) numbered WHERE place <= ?2 ORDER BY place, provider`

func (r orders) Due(ctx context.Context, now time.Time, limit int) (list []ports.DueOrder, err error) {
	seen := map[string]bool{}
	err = r.Rows(ctx, listDue, []any{column.Micros(now), limit}, func(row engine.Row) error {
		var o ports.DueOrder
		if err := row.Scan(&o.OrderID, &o.SessionID, &o.Provider, &o.AgentID); err != nil {
			return err
		}
		if !seen[o.SessionID] {
			list = append(list, o)
		}
		seen[o.SessionID] = true
		return nil
	})
	return list, work.Wrap("list upstream orders that are due", err)
}

// servedAmong is how many of a provider's newest orders show which agents were served lately.
const servedAmong = 256

// listWaiting reads the planned orders of a provider from the partial index, whose text it repeats.
// An agent that is not known, or has no origin, is a party by its id.
const listWaiting = `SELECT w.id, w.planned_at, w.agent, COALESCE(a.verified_for, ''), a.registered_from,
		COALESCE(l.recharged, 0) + COALESCE(l.adjusted, 0) FROM (
		SELECT o.id, COALESCE(s.agent_id, '') AS agent, o.planned_at, o.seq,
			ROW_NUMBER() OVER (PARTITION BY s.agent_id ORDER BY o.seq) AS n
		FROM upstream_orders o LEFT JOIN sessions s ON s.id = o.session_id
		WHERE o.provider = ?1 AND o.status = 'planned' AND o.status IN ('planned', 'sent', 'unknown')
			AND (o.sku = ?2 OR o.sku = '' OR ?2 = '') AND (o.country = ?3 OR o.country = '' OR ?3 = '')) w
	LEFT JOIN agents a ON a.id = w.agent LEFT JOIN wallets l ON l.agent_id = w.agent
	WHERE w.n = 1 OR w.id = ?5 ORDER BY w.n, w.seq LIMIT ?4`

const listServed = `SELECT s.agent_id, COALESCE(a.verified_for, ''), a.registered_from, MAX(o.sent_at) FROM (
		SELECT session_id, sent_at FROM upstream_orders WHERE provider = ?1 AND status <> 'planned'
		ORDER BY seq DESC LIMIT ?2) o
	JOIN sessions s ON s.id = o.session_id LEFT JOIN agents a ON a.id = s.agent_id
	GROUP BY s.agent_id, a.verified_for, a.registered_from`

func (r orders) Waiting(
	ctx context.Context, o procurement.Order, funding account.Funding, limit int,
) (list []procurement.Waiting, err error) {
	served := map[string]int64{} // by party
	err = r.Rows(ctx, listServed, []any{o.Provider, servedAmong}, func(row engine.Row) error {
		var a account.Agent
		var from []byte
		var at int64
		err := row.Scan(&a.ID, &a.VerifiedFor, &from, &at)
		a.Origin.Addr = column.Addr(from)
		served[a.Party()] = max(served[a.Party()], at)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list who was served at %s: %w", o.Provider, err)
	}
	args := []any{o.Provider, o.Intent.SKU, o.Intent.Location.Country, limit, o.ID}
	err = r.Rows(ctx, listWaiting, args, func(row engine.Row) error {
		var w procurement.Waiting
		var a account.Agent
		var from []byte
		var planned int64
		var credited domain.Money
		if err := row.Scan(&w.OrderID, &planned, &a.ID, &a.VerifiedFor, &from, &credited); err != nil {
			return err
		}
		a.Origin.Addr = column.Addr(from)
		w.Party = fair.Party{Key: a.Party(), Funded: a.Tier(credited, funding) != account.TrialTier}
		w.PlannedAt, w.ServedAt = column.Time(planned), column.Time(served[w.Party.Key])
		list = append(list, w)
		return nil
	})
	return list, work.Wrap("list waiting upstream orders of "+o.Provider, err)
}

const countRivals = `SELECT COUNT(*), COALESCE(SUM(CASE WHEN (sku = ?3 OR sku = '' OR ?3 = '')
	AND (country = ?4 OR country = '' OR ?4 = '') THEN 1 ELSE 0 END), 0)
	FROM upstream_orders WHERE provider = ?1 AND id <> ?2 AND status <> 'planned' AND frozen_at = 0 AND ` + isUndecided

// CountOpen locks the provider: what matters to its caller is that there is no other order, and that is
// no row to lock.
func (r orders) CountOpen(_ context.Context, o procurement.Order) (open, like int, err error) {
	r.Serialize("orders", o.Provider)
	err = r.Row(countRivals, o.Provider, o.ID, o.Intent.SKU, o.Intent.Location.Country).Scan(&open, &like)
	if err != nil {
		return 0, 0, fmt.Errorf("count rivals of upstream order %s: %w", o.ID, err)
	}
	return open, like, nil
}

// knownAtOnce is how many refs one query looks up.
const knownAtOnce = 256

// Known locks nothing: the ref of an order never becomes that of another.
func (r orders) Known(ctx context.Context, provider string, refs []string) (map[string]bool, error) {
	known := map[string]bool{}
	for len(refs) > 0 {
		part := refs[:min(len(refs), knownAtOnce)]
		refs = refs[len(part):]
		var some []string
		err := r.ORM(ctx).Model(&orderRow{}).
			Where("provider = ? AND ref <> '' AND ref IN ?", provider, work.SomeSizes(part)).Pluck("ref", &some).Error
		if err != nil {
			return nil, fmt.Errorf("look up known refs of %s: %w", provider, err)
		}
		for _, ref := range some {
			known[ref] = true
		}
	}
	return known, nil
}

const sumSpent = `SELECT CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM upstream_orders
	WHERE provider = ?1 AND status = 'confirmed' AND sent_at >= ?2`

func (r orders) Spent(_ context.Context, provider string, since time.Time) (sum domain.Money, err error) {
	err = r.Row(sumSpent, provider, column.Micros(since)).Scan(&sum)
	return sum, work.Wrap("sum what was spent at "+provider, err)
}

const countOpen = `SELECT COUNT(*), COALESCE(SUM(CASE WHEN frozen_at > 0 THEN 1 ELSE 0 END), 0)
	FROM upstream_orders WHERE ` + isUndecided

func (r orders) Tally(context.Context) (open, frozen int, err error) {
	err = r.Row(countOpen).Scan(&open, &frozen)
	return open, frozen, work.Wrap("count open upstream orders", err)
}

// isOwed holds for what a provider is to have. It repeats the text of the partial index.
const isOwed = `kind = 'purchase' AND status = 'confirmed' AND closed_at = 0`

const listLiveTraffic = `SELECT o.ref, o.session_id, s.product_no FROM upstream_orders o
	JOIN sessions s ON s.id = o.session_id
	WHERE o.kind = 'purchase' AND o.status = 'confirmed' AND o.closed_at = 0 AND o.provider = ?1 AND o.type = 'dynamic'
	AND s.status = 'active' ORDER BY o.seq DESC LIMIT ?2`

func (r orders) LiveTraffic(
	ctx context.Context, provider string, limit int,
) (list []ports.LiveOrder, err error) {
	err = r.Rows(ctx, listLiveTraffic, []any{provider, limit}, func(row engine.Row) error {
		var o ports.LiveOrder
		err := row.Scan(&o.Ref, &o.SessionID, &o.Product)
		list = append(list, o)
		return err
	})
	return list, work.Wrap("list live traffic of "+provider, err)
}

const countOwed = `SELECT provider, COUNT(*), COALESCE(SUM(CASE WHEN lost_at > 0 THEN 1 ELSE 0 END), 0),
	COALESCE(SUM(CASE WHEN frozen_at > 0 THEN 1 ELSE 0 END), 0)
	FROM upstream_orders WHERE ` + isOwed + ` GROUP BY provider`

func (r orders) Owed(ctx context.Context) (map[string]procurement.Owed, error) {
	found := map[string]procurement.Owed{}
	err := r.Rows(ctx, countOwed, nil, func(rows engine.Row) error {
		var provider string
		var w procurement.Owed
		if err := rows.Scan(&provider, &w.Live, &w.Missing, &w.Late); err != nil {
			return err
		}
		found[provider] = w
		return nil
	})
	return found, work.Wrap("count owed upstream orders", err)
}
