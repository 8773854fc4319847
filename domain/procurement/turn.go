package procurement

import (
	"cmp"
	"slices"
	"time"
)

// Waiting is a planned order that may be sent to a provider.
type Waiting struct {
	OrderID   string
	AgentID   string
	PlannedAt time.Time
	ServedAt  time.Time // when an order of the agent was last sent there; zero: not lately
}

// Place returns how many of the orders that wait are sent before one. Agents take turns,
// an order of each: first the agent that was served the longest time ago, and of those who
// were not, who has waited longest. So an agent with many orders delays another's by one.
// An order that is not in the list comes after it.
func Place(list []Waiting, orderID string) int {
	type entry struct {
		Waiting
		round int // how many older orders its agent has in the list
	}
	sorted := make([]entry, len(list))
	for i, w := range list {
		sorted[i].Waiting = w
		for _, other := range list {
			if other.AgentID == w.AgentID && older(other, w) < 0 {
				sorted[i].round++
			}
		}
	}
	slices.SortFunc(sorted, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.round, b.round), a.ServedAt.Compare(b.ServedAt), older(a.Waiting, b.Waiting))
	})
	if place := slices.IndexFunc(sorted, func(e entry) bool { return e.OrderID == orderID }); place >= 0 {
		return place
	}
	return len(list)
}

func older(a, b Waiting) int {
	return cmp.Or(a.PlannedAt.Compare(b.PlannedAt), cmp.Compare(a.OrderID, b.OrderID))
}
