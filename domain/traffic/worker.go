package traffic

import (
	"cmp"
	"slices"
)

// WorkerUse is what passed through one worker of a session, cumulative like the counters of a lease.
type WorkerUse struct {
	ID                    int64
	Up, Down, Connections int64
	Open                  int64 // connections now, which is not a counter
}

// forgetWorkers returns the counters without those of some workers.
func forgetWorkers(stored []WorkerUse, ids []int64) []WorkerUse {
	if len(ids) == 0 || len(stored) == 0 {
		return stored
	}
	return slices.DeleteFunc(slices.Clone(stored), func(w WorkerUse) bool { return slices.Contains(ids, w.ID) })
}

// renewWorkers returns what moved since a lease was stored, and the counters after it. Counters that
// went backwards change nothing. What workers moved is part of what the session moved; if it is more,
// nothing is counted by worker.
func renewWorkers(stored, reported []WorkerUse, all Delta) (moved, after []WorkerUse) {
	if len(reported) == 0 {
		return nil, stored
	}
	after = slices.Clone(stored)
	var sum WorkerUse
	for _, a := range reported {
		i, known := slices.BinarySearchFunc(after, a.ID, func(w WorkerUse, id int64) int { return cmp.Compare(w.ID, id) })
		if !known {
			after = slices.Insert(after, i, WorkerUse{ID: a.ID})
		}
		w := &after[i]
		w.Open = a.Open
		d := WorkerUse{a.ID, max(a.Up-w.Up, 0), max(a.Down-w.Down, 0), max(a.Connections-w.Connections, 0), 0}
		if d == (WorkerUse{ID: a.ID}) {
			continue
		}
		w.Up, w.Down, w.Connections = w.Up+d.Up, w.Down+d.Down, w.Connections+d.Connections
		sum.Up, sum.Down, sum.Connections = sum.Up+d.Up, sum.Down+d.Down, sum.Connections+d.Connections
		moved = append(moved, d)
	}
	if sum.Up > all.Up || sum.Down > all.Down || sum.Connections > all.Connections {
		return nil, stored
	}
	return moved, after
}
