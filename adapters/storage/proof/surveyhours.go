package proof

import (
	"context"
	"strconv"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
)

// readHours sums the hours of a range of agents.
func (s *survey) readHours(ctx context.Context, conn engine.Conn, scope string, args []any) error {
	if s.mixed {
		return nil
	}
	var agent, id string
	var hour, counted int64
	var u used
	into := []any{&agent, &id, &hour, &u.up, &u.down, &u.connections, &u.charged, &u.refunded, &u.recharged, &counted}
	err := conn.Rows(ctx, scope+`SELECT agent_id, session_id, hour, up, down, connections, charged, refunded, recharged,
		counted FROM usage_hours`, args, func(row engine.Row) error {
		if err := row.Scan(into...); err != nil || s.mixed {
			return err
		}
		a := s.agents[agent]
		a.charged, a.refunded, a.recharged = a.charged+u.charged, a.refunded+u.refunded, a.recharged+u.recharged
		s.agents[agent] = a
		if u.refunded != 0 || u.recharged != 0 {
			m := s.moved[hourOf{agent, id, hour}]
			m.add(used{refunded: u.refunded, recharged: u.recharged})
			s.moved[hourOf{agent, id, hour}] = m
		}
		of := "0"
		if id != "" {
			of = "1"
		}
		if counted == 1 {
			sum := s.sums[hourOf{agent, of, hour}]
			sum.add(u)
			s.sums[hourOf{agent, of, hour}] = sum
		}
		if id != "" {
			s.addHour(agent, id, hour, counted, u)
		}
		return nil
	})
	return work.Wrap("survey hours", err)
}

// addHour adds an hour to its session.
func (s *survey) addHour(agent, id string, hour, counted int64, u used) {
	x := s.session(agent, id)
	if x == nil {
		return
	}
	x.hours.add(u)
	if counted == 1 {
		x.addDay(hour, u.up+u.down)
	}
	if u.up+u.down+u.connections > 0 || u.charged > 0 {
		if !x.isUsed {
			x.begin, x.end, x.isUsed = hour, hour, true
		}
		x.begin, x.end = min(x.begin, hour), max(x.end, hour)
	}
	if counted == 1 && (!x.isCounted || hour > x.counted) {
		x.counted, x.isCounted = hour, true
	}
}

// readCounts compares what is counted once with what it is of.
func (s *survey) readCounts(ctx context.Context, conn engine.Conn, scope string, args []any) error {
	for _, x := range s.of {
		if x.isCounted {
			s.lasts[hourOf{agent: x.agent, hour: x.counted}]++
		}
	}
	var k hourOf
	var u used
	var last, n, of, delivered int64
	into := []any{&k.agent, &k.hour, &of, &u.up, &u.down, &u.connections, &u.charged, &u.refunded, &u.recharged, &last,
		&delivered}
	err := conn.Rows(ctx, scope+`SELECT agent_id, hour, of_sessions, up, down, connections, charged, refunded, recharged,
		last, delivered FROM agent_hours`, args, func(row engine.Row) error {
		if err := row.Scan(into...); err != nil || s.mixed {
			return err
		}
		s.doubt[deliveredHere] = s.doubt[deliveredHere] || delivered < 0 || delivered > u.up+u.down
		if delivered != u.up+u.down {
			s.open[agentDay{k.agent, k.hour - k.hour%dayMicros}] = true
		}
		k.of = strconv.FormatInt(of, 10)
		sum := s.sums[k]
		sum.add(used{-u.up, -u.down, -u.connections, -u.charged, -u.refunded, -u.recharged})
		s.sums[k] = sum
		s.lasts[hourOf{agent: k.agent, hour: k.hour}] -= last
		return nil
	})
	if err != nil {
		return work.Wrap("survey the sums of hours", err)
	}
	var e endedOf
	err = conn.Rows(ctx, scope+"SELECT agent_id, product_no, type, status, n FROM session_counts", args,
		func(row engine.Row) error {
			err := row.Scan(&e.agent, &e.product, &e.kind, &e.status, &n)
			s.ended[e] -= n
			return err
		})
	s.doubt[hourSums], s.doubt[hourMoves] = s.mixed || anyUsed(s.sums), s.mixed || anyUsed(s.moved)
	s.doubt[lastHours], s.doubt[endedCounts] = s.mixed || anyLeft(s.lasts), anyLeft(s.ended)
	return work.Wrap("survey the counts of sessions", err)
}

func anyUsed(sums map[hourOf]used) bool {
	for _, u := range sums {
		if u != (used{}) {
			return true
		}
	}
	return false
}

func anyLeft[K comparable](counts map[K]int64) bool {
	for _, n := range counts {
		if n != 0 {
			return true
		}
	}
	return false
}

// note doubts the rules of which a session has a bit.
func (s *survey) note(odd int64) {
	for i := 0; odd > 0; i, odd = i+1, odd>>1 {
		if odd&1 == 1 {
			s.doubt[surveyedRules[i]] = true
		}
	}
}

func (s *survey) readOdd(ctx context.Context, conn engine.Conn, scope string, args []any) error {
	var odd int64
	err := conn.Rows(ctx, scope+"SELECT DISTINCT "+oddBits()+" FROM sessions s", args, func(row engine.Row) error {
		err := row.Scan(&odd)
		s.note(odd)
		return err
	})
	return work.Wrap("survey sessions", err)
}
