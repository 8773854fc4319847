package health

import (
	"cmp"
	"slices"
	"time"
)

const (
	hostsKept    = 16   // hosts whose bad weight is followed
	hostsVisible = 5    // of them reported
	visibleFrom  = 0.01 // bad weight below which a host is no longer listed
)

// HostWeight is the share of a target host in the bad weight.
type HostWeight struct {
	Host      string
	Events    int64 // scored events that named it, since it was first followed
	BadWeight float64
}

// hostTable follows the hosts that cost the most. Its weights decay, fade and
// survive rotations like those of the score, so their sum is at most B.
type hostTable struct {
	n    uint8
	rows [hostsKept]hostRow
}

type hostRow struct {
	host   string // at most MaxHost bytes
	events uint32
	bad    float64
}

func (t *hostTable) scale(by float64) {
	for i := range t.rows[:t.n] {
		t.rows[i].bad = scaled(t.rows[i].bad, by)
	}
}

// add counts a scored event. When the table is full, a host that is not in it
// takes the place of the one with the least weight if it brings more.
func (t *hostTable) add(host string, cost float64) {
	if host == "" {
		return
	}
	host = clip(host, MaxHost)
	least := 0
	for i := range t.rows[:t.n] {
		row := &t.rows[i]
		if row.host == host {
			row.events++
			row.bad += cost
			return
		}
		if row.bad < t.rows[least].bad {
			least = i
		}
	}
	row := hostRow{host: host, events: 1, bad: cost}
	switch {
	case t.n < hostsKept:
		t.rows[t.n] = row
		t.n++
	case cost > t.rows[least].bad:
		t.rows[least] = row
	}
}

// WorstHosts lists the target hosts with the most bad weight at a moment, the
// worst first, at most five.
func (s *State) WorstHosts(now time.Time) []HostWeight {
	left := decay(microsOf(now) - s.lastAt)
	var worst []HostWeight
	for _, row := range s.hosts.rows[:s.hosts.n] {
		if bad := row.bad * left; bad >= visibleFrom {
			worst = append(worst, HostWeight{Host: row.host, Events: int64(row.events), BadWeight: bad})
		}
	}
	slices.SortFunc(worst, func(a, b HostWeight) int {
		return cmp.Or(cmp.Compare(b.BadWeight, a.BadWeight), cmp.Compare(a.Host, b.Host))
	})
	return worst[:min(len(worst), hostsVisible)]
}
