package quota

import (
	"testing"
	"time"
)

// noted notes connections to targets from one on, of which those in a hundred fail, and returns the scans that are found.
func noted(s *Starts, from, targets, failed int, at time.Time) (found []Scan) {
	for n := from; n < from+targets; n++ {
		if scan, ok := s.Note("agt_1", Target(n), n*37%100 >= failed, at); ok {
			found = append(found, scan)
		}
	}
	return found
}

func TestAScanIsFound(t *testing.T) {
	for _, c := range []struct {
		claim           string
		targets, failed int
		want            int
	}{
		{"a scan", 1200, 97, 1},
		{"one that finds a fifth", 1200, 80, 1},
		{"a crawler with many dead links", 1200, 79, 0},
		{"a browser", 1200, 3, 0},
		{"what is too little to be one", 299, 100, 0},
		{"what is just one", 300, 100, 1},
	} {
		s := NewStarts()
		found := noted(s, 0, c.targets, c.failed, noon)
		if len(found) != c.want || len(found) > 0 && (found[0].Targets < 300 || 100*found[0].Failed < 80*found[0].Targets) {
			t.Errorf("%s: found %+v, want %d", c.claim, found, c.want)
		}
	}
}

func TestWhatAnAgentTriedCountsForTenMinutes(t *testing.T) {
	s := NewStarts()
	for range 1000 { // one target is one, however often it is tried
		if scan, found := s.Note("agt_1", 1, false, noon); found || scan.Targets > 1 {
			t.Fatalf("%+v", scan)
		}
	}
	if found := noted(s, 0, 200, 100, noon); len(found) > 0 {
		t.Errorf("200 targets: %+v", found)
	}
	if found := noted(s, 200, 200, 100, noon.Add(ScanWindow)); len(found) > 0 {
		t.Errorf("200 more after the window: %+v", found)
	}
	if found := noted(s, 400, 100, 100, noon.Add(2*ScanWindow-time.Second)); len(found) != 1 || found[0].Targets != 300 {
		t.Errorf("100 more within it: %+v", found)
	}
	if found := noted(s, 500, 400, 100, noon.Add(2*ScanWindow-time.Second)); len(found) != 0 {
		t.Errorf("reported again: %+v", found)
	}
	if found := noted(s, 0, 400, 100, noon.Add(3*ScanWindow)); len(found) != 1 {
		t.Errorf("in the next window: %+v", found)
	}
	s.Trim(noon.Add(3*ScanWindow + time.Minute))
	if len(s.agents) != 1 {
		t.Error("forgotten within the window")
	}
	for n := range 5000 {
		s.Note("agt_2", Target(n), true, noon)
	}
	if n := s.agents["agt_2"].size(); n != mostTried {
		t.Errorf("%d targets are watched", n)
	}
	late := NewStarts() // a target that opens later has not failed
	noted(late, 0, 299, 100, noon)
	for n := range 200 {
		late.Note("agt_1", Target(n), true, noon)
	}
	if scan, found := late.Note("agt_1", 299, false, noon); found || scan != (Scan{Targets: 300, Failed: 100}) {
		t.Errorf("after 200 opened: %+v, %v", scan, found)
	}
}
