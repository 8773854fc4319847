package health

import "time"

// codesKept is how many distinct status codes a counter follows. Sessions meet a
// dozen; a full table gives up its rarest code for a new one.
const codesKept = 32

// tally counts what happened on one stretch of a session: before its last
// rotation, or since.
type tally struct {
	scored, good uint64 // scored events of both sources; those that cost nothing
	reported     counts
	latency      latencies // of reported events
	observed     counts
}

// counts counts the events of one source.
type counts struct {
	byType [len(types)]uint64
	codes  codeTable
	lastAt micros
}

// codeTable counts events by status code.
type codeTable struct {
	n     uint8
	rows  [codesKept]codeRow
	other uint64 // events with a code that is not kept
}

type codeRow struct {
	code   uint16 // 1 to MaxStatusCode
	events uint32
}

func (t *tally) merge(other *tally) {
	t.scored += other.scored
	t.good += other.good
	t.reported.merge(&other.reported)
	t.latency.merge(&other.latency)
	t.observed.merge(&other.observed)
}

func (c *counts) add(e Event, at micros) {
	c.byType[e.Type.index()]++
	if e.StatusCode > 0 && e.StatusCode <= MaxStatusCode {
		c.codes.add(uint16(e.StatusCode), 1)
	}
	c.lastAt = max(c.lastAt, at)
}

func (c *counts) merge(other *counts) {
	for i, n := range other.byType {
		c.byType[i] += n
	}
	for _, row := range other.codes.rows[:other.codes.n] {
		c.codes.add(row.code, row.events)
	}
	c.codes.other += other.codes.other
	c.lastAt = max(c.lastAt, other.lastAt)
}

func (t *codeTable) add(code uint16, events uint32) {
	rarest := 0
	for i := range t.rows[:t.n] {
		row := &t.rows[i]
		if row.code == code {
			row.events += events
			return
		}
		if row.events < t.rows[rarest].events {
			rarest = i
		}
	}
	if t.n < codesKept {
		t.rows[t.n] = codeRow{code, events}
		t.n++
		return
	}
	t.other += uint64(t.rows[rarest].events)
	t.rows[rarest] = codeRow{code, events}
}

// Figures are the counters of one source over one stretch of a session.
type Figures struct {
	TotalEvents      int64
	ByType           map[Type]int64 // has every type
	StatusCodes      map[int]int64  // the 32 most met; no entry for 0, no answer
	OtherStatusCodes int64          // events with a code that is not in StatusCodes
	LatencyCount     int64          // events with a latency; 0 for what is observed
	AvgLatencyMS     float64        // 0 without latencies
	P95LatencyMS     int            // within 3.2 percent; 0 without latencies
	LastEventAt      time.Time      // of receipt; zero without events
}

// ExitStats are the figures of one stretch, the two sources apart.
type ExitStats struct {
	Reported Figures
	Observed Figures
}

// Stats is what the score does not forget.
type Stats struct {
	Session     ExitStats // since the session began
	CurrentExit ExitStats // since the last rotation
	Rotations   int64
}

// Stats returns the counters of the session.
func (s *State) Stats() Stats {
	all := s.past
	all.merge(&s.exit)
	return Stats{
		Session:     all.stats(),
		CurrentExit: s.exit.stats(),
		Rotations:   int64(s.rotations),
	}
}

func (t *tally) stats() ExitStats {
	reported := t.reported.figures()
	reported.LatencyCount = int64(t.latency.count())
	reported.AvgLatencyMS = t.latency.mean()
	reported.P95LatencyMS = t.latency.p95()
	return ExitStats{Reported: reported, Observed: t.observed.figures()}
}

func (c *counts) figures() Figures {
	f := Figures{
		ByType:           make(map[Type]int64, len(types)),
		StatusCodes:      make(map[int]int64, c.codes.n),
		OtherStatusCodes: int64(c.codes.other),
		LastEventAt:      c.lastAt.time(),
	}
	for i, n := range c.byType {
		f.ByType[types[i]] = int64(n)
		f.TotalEvents += int64(n)
	}
	for _, row := range c.codes.rows[:c.codes.n] {
		f.StatusCodes[int(row.code)] = int64(row.events)
	}
	return f
}
