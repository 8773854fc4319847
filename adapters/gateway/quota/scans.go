package quota

import "time"

// The figures of a scan: in ScanWindow an agent tried at least ScanTargets different targets, and
// of them at least ScanFailed in a hundred did not open once. Who works through addresses, ports or
// names in order finds few that answer; browsers and crawlers take what others link, of which
// most answer, and a page has some 30 registrable domains. ScanTargets is a quarter of what an
// account on trial may try in ScanWindow, so that a scan at its limits is found within three
// minutes.
const (
	ScanWindow  = 10 * time.Minute
	ScanTargets = 300
	ScanFailed  = 80
)

// mostTried bounds the targets of an agent that are watched in a window: more add nothing.
const mostTried = 1 << 10

// Scan is what looks like a scan of an agent.
type Scan struct {
	Targets int // different ones
	Failed  int // of them; none of these opened
}

// tried is what an agent tried in a window. Times are Unix seconds.
type tried struct {
	since    int64
	targets  map[uint32]bool // whether it opened
	failed   int
	reported bool
}

// Note records whether a connection of an agent to a target opened. found is set once in a window,
// when what the agent does looks like a scan.
func (s *Starts) Note(agent string, t Target, opened bool, now time.Time) (scan Scan, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.agent(agent, now)
	if w := &a.tried; now.Unix()-w.since >= int64(ScanWindow/time.Second) || now.Unix() < w.since {
		s.seen -= len(w.targets)
		*w = tried{since: now.Unix(), targets: map[uint32]bool{}}
	}
	w := &a.tried
	before, known := w.targets[uint32(t)]
	switch {
	case !known && len(w.targets) >= mostTried, known && (before || !opened):
		return scan, false
	case known:
		w.failed--
	default:
		if s.seen >= s.maxSeen {
			s.forgetOne(a)
		}
		s.seen++
		if !opened {
			w.failed++
		}
	}
	w.targets[uint32(t)] = opened
	scan = Scan{Targets: len(w.targets), Failed: w.failed}
	if w.reported || scan.Targets < ScanTargets || 100*scan.Failed < ScanFailed*scan.Targets {
		return scan, false
	}
	w.reported = true
	return scan, true
}
