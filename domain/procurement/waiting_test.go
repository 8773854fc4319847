package procurement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/fair"
	"agentproxy/domain/procurement"
)

func TestWhoWaitsTakesTurnsWithOtherAgents(t *testing.T) {
	start := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	at := func(n int) time.Time {
		if n == 0 {
			return time.Time{}
		}
		return start.Add(time.Duration(n) * time.Second)
	}
	type w struct {
		agent           string // in capitals: one on trial
		planned, served int    // seconds; 0: never
	}
	for claim, c := range map[string]struct {
		line []w
		want []int // places
	}{
		"one agent: the oldest first":              {[]w{{"a", 3, 0}, {"a", 1, 0}, {"a", 2, 0}}, []int{2, 0, 1}},
		"at the same time: by id":                  {[]w{{"a", 1, 0}, {"b", 1, 0}}, []int{0, 1}},
		"who was not served comes first":           {[]w{{"a", 1, 9}, {"a", 2, 9}, {"b", 8, 0}}, []int{1, 2, 0}},
		"who was served longest ago comes first":   {[]w{{"a", 1, 9}, {"b", 8, 7}, {"c", 9, 8}}, []int{2, 0, 1}},
		"an account on trial comes after the rest": {[]w{{"A", 1, 0}, {"B", 2, 0}, {"c", 3, 9}, {"c", 4, 9}}, []int{2, 3, 0, 1}},
		"unless it has waited for long":            {[]w{{"A", -300, 0}, {"B", 2, 0}, {"c", 3, 9}}, []int{0, 2, 1}},
		"one of each before the second of anybody": {[]w{{"a", 1, 0}, {"a", 2, 0}, {"b", 3, 0}, {"b", 4, 0}}, []int{0, 2, 1, 3}},
	} {
		var line []procurement.Waiting
		for i, x := range c.line {
			line = append(line, procurement.Waiting{OrderID: fmt.Sprint("ord_", i), Party: partyOf(x.agent), PlannedAt: at(x.planned), ServedAt: at(x.served)})
		}
		for i, want := range c.want {
			if got := procurement.Place(line, fmt.Sprint("ord_", i), start); got != want {
				t.Errorf("%s: order %d has place %d, want %d", claim, i, got, want)
			}
		}
		if got := procurement.Place(line, "ord_x", start); got != len(line) {
			t.Errorf("%s: one that is not in the list has place %d", claim, got)
		}
	}
}

// partyOf returns a party, which is on trial if its name is in capitals.
func partyOf(name string) fair.Party {
	return fair.Party{Key: name, Funded: strings.ToLower(name) == name}
}

// Of an agent with 500 orders and one with a single order, which comes at any time, the
// single one is next.
func TestASingleOrderIsNextWheneverItComes(t *testing.T) {
	var line []procurement.Waiting
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for i := range 500 {
		line = append(line, procurement.Waiting{OrderID: fmt.Sprintf("ord_%03d", i), Party: partyOf("many"), PlannedAt: now.Add(time.Duration(i))})
	}
	for sent := range 20 { // the first of the many has just been sent
		rest := line[sent+1:]
		for i := range rest {
			rest[i].ServedAt = now.Add(time.Duration(sent+1) * time.Minute)
		}
		with := append([]procurement.Waiting{{OrderID: "one", Party: partyOf("one"), PlannedAt: now.Add(time.Hour)}}, rest...)
		if got := procurement.Place(with, "one", now); got != 0 {
			t.Fatalf("after %d orders %d are before it", sent+1, got)
		}
	}
}
