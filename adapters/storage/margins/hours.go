package margins

import (
	"context"
	"fmt"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// What dynamic sessions used of what is served in process is summed by the day of an agent, of the hours that
// agent_hours has. A day is summed anew when it gets another hour, or an hour of it gets more.

// stepHours is how many hours of agents a unit looks for.
const stepHours = 200

const (
	openHours = `SELECT agent_id, hour, up + down FROM agent_hours%s WHERE up + down <> delivered
		AND of_sessions = 1 ORDER BY agent_id, hour LIMIT ?1`
	usedOnDay = `SELECT s.provider, s.product_no, s.type, CAST(SUM(h.up + h.down) AS BIGINT), COUNT(DISTINCT s.id)
		FROM usage_hours h JOIN sessions s ON s.id = h.session_id WHERE h.counted = 1 AND h.agent_id = ?1
		AND h.hour >= ?2 AND h.hour < ?3 AND ` + isUse + ` GROUP BY 1, 2, 3
		UNION ALL SELECT provider, product_no, type, -bytes, -n FROM delivery_sums WHERE day = ?2
		AND by_key = 'agent' AND name = ?1 AND ordered = 0 AND type = 'dynamic'`
	addUse = `INSERT INTO delivery_sums
		(day, by_key, name, provider, product_no, type, ordered, ips, days, charged, bytes, n)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, 0, ?7, ?8) ` + addDelivery
	setDelivered = `UPDATE agent_hours SET delivered = ?3 WHERE agent_id = ?1 AND hour = ?2 AND of_sessions = 1`
)

// agentDay is a day of an agent.
type agentDay struct {
	agent string
	day   int64
}

// SumHours sums the next days of agents, and reports whether there are more. What an hour gets meanwhile is found
// again: the hours are read first.
func SumHours(ctx context.Context, u *work.Unit) (more bool, err error) {
	u.Serialize("sum up")
	type hour struct {
		agent    string
		at, used int64
	}
	var hours []hour
	err = u.Rows(ctx, fmt.Sprintf(openHours, u.Database.By(hoursOpen)), []any{stepHours}, func(row engine.Row) error {
		var h hour
		err := row.Scan(&h.agent, &h.at, &h.used)
		hours = append(hours, h)
		return err
	})
	if err != nil {
		return false, work.Wrap("list hours whose deliveries are not summed", err)
	}
	var last agentDay
	for _, h := range hours {
		if day := (agentDay{h.agent, h.at - h.at%DayMicros}); day != last {
			if last = day; err == nil {
				err = day.sum(ctx, u)
			}
		}
		if err == nil {
			err = u.Later("note what is summed of an hour", setDelivered, h.agent, h.at, h.used)
		}
	}
	return len(hours) == stepHours, err
}

// sum makes the sums of the day what its hours have.
func (d agentDay) sum(ctx context.Context, u *work.Unit) error {
	type of struct{ provider, product, kind string }
	more := map[of]ports.Delivery{}
	var keys []of
	err := u.Rows(ctx, usedOnDay, []any{d.agent, d.day, d.day + DayMicros}, func(row engine.Row) error {
		var k of
		var bytes int64
		var n int
		err := row.Scan(&k.provider, &k.product, &k.kind, &bytes, &n)
		sum, known := more[k]
		if !known {
			keys = append(keys, k)
		}
		sum.Bytes, sum.Count = sum.Bytes+bytes, sum.Count+n
		more[k] = sum
		return err
	})
	if err != nil {
		return work.Wrap("sum the deliveries of a day", err)
	}
	for _, k := range keys {
		sum := more[k]
		if sum == (ports.Delivery{}) {
			continue
		}
		for by, name := range map[ports.MarginKey]string{ports.ByProvider: k.provider, ports.ByProduct: k.product,
			ports.ByAgent: d.agent} {
			err := u.Later("sum the deliveries of a day", addUse, d.day, string(by), name, k.provider, k.product, k.kind,
				sum.Bytes, int64(sum.Count))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
