package list

import (
	"context"
	"maps"
	"sync"
	"time"
)

// report is the state of a list for the operator.
type report struct {
	mu     sync.Mutex
	lines  map[string]int
	logged map[string]bool // orders whose line is gone
	fault  string          // the last that was logged
}

// Reporter is a Source with figures of its own for the operator, by name.
type Reporter interface {
	Report() map[string]int
}

// Replacer is a Source whose proxies can be replaced where they come from.
type Replacer interface {
	// Replace begins, or goes on with, replacing lines that are sold and fail. The next
	// Load shows what came in their place.
	Replace(ctx context.Context, lines []Line) error
}

// keepFor bounds one run of Keep.
const keepFor = 2 * time.Minute

// Maintain loads the list if it is due, probes the lines whose probe is due, and looks which
// lines that are sold are lost. Each replica has the list and its probes for itself.
func (s *seller) Maintain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keepFor)
	defer cancel()
	s.logFault(s.load(ctx))
	if !s.pool.isLoaded() {
		return nil
	}
	s.pool.probeAll(ctx, s.pool.due(s.now(), s.recheck), s.probe, s.now)
	failing, err := s.count(ctx)
	if r, ok := s.source.(Replacer); ok && err == nil {
		err = r.Replace(ctx, failing)
	}
	return err
}

// logFault logs a fault of the list once, however long it lasts.
func (s *seller) logFault(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.report.mu.Lock()
	same := s.report.fault == text
	s.report.fault = text
	s.report.mu.Unlock()
	if !same && err != nil {
		s.log.Error("the list of proxies cannot be loaded; the last good one stays", "provider", s.name, "err", err)
	}
}

// count takes stock, and logs each order once whose line is gone. It returns the lines that
// are sold and fail.
func (s *seller) count(ctx context.Context) (failing []Line, err error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	n := map[string]int{"listed": 0, "working": 0, "sold": len(all), "sold_gone": 0, "sold_failing": 0}
	gone := map[string]bool{}
	s.pool.view(func(lines []*entry, byKey map[string]*entry) {
		n["listed"] = len(lines)
		for _, e := range lines {
			if e.works() {
				n["working"]++
			}
		}
		for _, c := range all {
			switch e := byKey[c.Line]; {
			case e == nil:
				n["sold_gone"]++
				gone[c.OrderID] = true
			case !e.works():
				n["sold_failing"]++
				failing = append(failing, e.Line)
			}
		}
	})
	s.report.mu.Lock()
	defer s.report.mu.Unlock()
	for order := range gone {
		if !s.report.logged[order] {
			s.log.Error("a line that is sold is not in the list any more", "provider", s.name, "order_id", order)
		}
	}
	if r, ok := s.source.(Reporter); ok {
		maps.Copy(n, r.Report())
	}
	s.report.lines, s.report.logged = n, gone
	return failing, nil
}

// Stock counts the lines of the list by what became of them, as of the last Keep: listed,
// working, sold, and of those sold_gone (from the list) and sold_failing. Figures of the
// source are among them.
func (s *seller) Stock() map[string]int {
	s.report.mu.Lock()
	defer s.report.mu.Unlock()
	return s.report.lines
}
