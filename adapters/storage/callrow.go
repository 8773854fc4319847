package storage

import (
	"strings"

	"agentproxy/ports"
)

// callRow is a row of idempotency_keys.
type callRow struct {
	AgentID, Path, Key string
	Request            []byte
	Resource           string
	Status, CreatedAt  int64
}

// putCallAgain replaces a key that is stored.
const putCallAgain = `
	ON CONFLICT (agent_id, path, key) DO UPDATE SET request = excluded.request, resource = excluded.resource,
	status = excluded.status, created_at = excluded.created_at`

// callLock returns the name of the advisory lock of a key.
func callLock(agentID, path, key string) string {
	return strings.Join([]string{"call", agentID, path, key}, "\n")
}

// storedOutcomes are outcomes as the column status has them: the HTTP status of the
// first answer, or 0 while the call is in flight.
var storedOutcomes = map[int]ports.Outcome{0: ports.InFlight, 200: ports.Completed, 201: ports.Created,
	202: ports.Pending, 410: ports.Ended}

func outcomeStatus(o ports.Outcome) int {
	for status, stored := range storedOutcomes {
		if stored == o {
			return status
		}
	}
	return 0
}
