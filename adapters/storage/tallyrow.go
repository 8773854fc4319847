package storage

// hourRow is a row of usage_hours.
type hourRow struct {
	AgentID                                             string
	Hour                                                int64
	SessionID                                           string
	Up, Down, Connections, Charged, Refunded, Recharged int64
}

// addHourAgain adds to an hour that is stored.
const addHourAgain = `
	ON CONFLICT (agent_id, hour, session_id) DO UPDATE SET
	up = usage_hours.up + excluded.up, down = usage_hours.down + excluded.down,
	connections = usage_hours.connections + excluded.connections,
	charged = usage_hours.charged + excluded.charged, refunded = usage_hours.refunded + excluded.refunded,
	recharged = usage_hours.recharged + excluded.recharged`

// counterRow is a row of counters.
type counterRow struct {
	AgentID                                  string
	Reported, Scored, Good, Rotations, Bytes int64
}

// addCountersAgain adds to counters that are stored.
const addCountersAgain = `
	ON CONFLICT (agent_id) DO UPDATE SET reported = counters.reported + excluded.reported,
	scored = counters.scored + excluded.scored, good = counters.good + excluded.good,
	rotations = counters.rotations + excluded.rotations, bytes = counters.bytes + excluded.bytes`
