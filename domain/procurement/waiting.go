package procurement

import (
	"cmp"
	"slices"
	"time"

	"agentproxy/domain/fair"
)

// Waiting is a planned order that may be sent to a provider.
type Waiting struct {
	OrderID   string
	Party     fair.Party
	PlannedAt time.Time
	ServedAt  time.Time // when an order of the party was last sent there; zero: not lately
}

// TrialDelay is how long an order of a trial account comes after those of funded ones.
const TrialDelay = 5 * time.Minute

// Place returns how many of the orders that wait are sent before one. Funded parties come
// before those on trial which have not waited for TrialDelay. Among these parties take turns,
// an order of each: first the one that was served the longest time ago, and of those who
// were not, who has waited longest. So a party with many orders delays another's by one.
// An order that is not in the list comes after it.
func Place(list []Waiting, orderID string, now time.Time) int {
	type entry struct {
		Waiting
		class, round int // round: how many older orders its party has in the list
	}
	sorted := make([]entry, len(list))
	parties := map[fair.Party][]Waiting{}
	for _, w := range list {
		parties[w.Party] = append(parties[w.Party], w)
	}
	for i, w := range list {
		sorted[i].Waiting = w
		if !w.Party.Funded && now.Sub(w.PlannedAt) < TrialDelay {
			sorted[i].class = 1
		}
		for _, other := range parties[w.Party] {
			if older(other, w) < 0 {
				sorted[i].round++
			}
			if other.ServedAt.After(sorted[i].ServedAt) {
				sorted[i].ServedAt = other.ServedAt
			}
		}
	}
	slices.SortFunc(sorted, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.round, b.round),
			a.ServedAt.Compare(b.ServedAt), older(a.Waiting, b.Waiting))
	})
	if place := slices.IndexFunc(sorted, func(e entry) bool { return e.OrderID == orderID }); place >= 0 {
		return place
	}
	return len(list)
}

func older(a, b Waiting) int {
	return cmp.Or(a.PlannedAt.Compare(b.PlannedAt), cmp.Compare(a.OrderID, b.OrderID))
}
