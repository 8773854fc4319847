package fair_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentproxy/domain/fair"
)

func TestThoseWhoWaitAreServedInTurns(t *testing.T) {
	for _, c := range []struct{ pushed, want string }{
		{"", ""}, {"a", "a1"}, {"aaa", "a1 a2 a3"}, {"aaab", "a1 b1 a2 a3"}, {"aaabbc", "a1 b1 c1 a2 b2 a3"}, {"cab", "c1 a1 b1"},
	} {
		var l fair.Queue[string]
		push(&l, c.pushed)
		if l.Len() != len(c.pushed) {
			t.Errorf("%s: %d wait", c.pushed, l.Len())
		}
		if got := strings.Join(drain(&l), " "); got != c.want || l.Len() != 0 {
			t.Errorf("%s: served %s, want %s", c.pushed, got, c.want)
		}
	}
}

// One with 500 entries delays nothing of another that comes now and then, and in the long run
// each has every other turn.
func TestWhoComesNowAndThenIsNext(t *testing.T) {
	for name, other := range map[string]string{"b": "a", "B": "A"} { // funded, and on trial
		var l fair.Queue[string]
		push(&l, strings.Repeat(other, 2000))
		for range 100 {
			l.Next()
		}
		for visit := range 10 {
			for call := range 4 {
				l.Push(partyOf(name), "visitor")
				if x, _ := l.Next(); x != "visitor" {
					t.Fatalf("%s, visit %d, call %d: served %s", name, visit, call, x)
				}
			}
			for range 5 { // it is away
				l.Next()
			}
		}
		served := 0
		for range 400 {
			l.Push(partyOf(name), "visitor")
			if x, _ := l.Next(); x == "visitor" {
				served++
			}
		}
		if served < 195 || served > 210 {
			t.Errorf("%s: one that always waits had %d of 400 turns", name, served)
		}
	}
}

// One that rests for long does not hold up the rest for longer than its credit.
func TestARestIsWorthFewTurns(t *testing.T) {
	var l fair.Queue[string]
	push(&l, strings.Repeat("a", 1000))
	for range 500 {
		l.Next()
	}
	for range 100 {
		l.Push(partyOf("b"), "b")
	}
	run := 0
	for x, _ := l.Next(); x == "b"; x, _ = l.Next() {
		run++
	}
	if run != 9 {
		t.Errorf("it had %d turns in a row, want 9", run)
	}
}

// One that has paid comes before accounts on trial that are new, however many they are.
func TestAFundedOneComesBeforeNewTrials(t *testing.T) {
	var l fair.Queue[string]
	for n := range 31 {
		l.Push(fair.Party{Key: fmt.Sprint("trial", n)}, "trial")
	}
	served := ""
	for range 27 {
		l.Push(partyOf("one"), "one")
		x, _ := l.Next()
		served += x[:1]
	}
	if served != "oooooooot"+"oooooooot"+"oooooooot" {
		t.Errorf("served %s", served)
	}
}

// Others that come for the first time, again and again, do not keep one from its turn, and are
// not stored without end.
func TestNewcomersDoNotKeepOneFromItsTurn(t *testing.T) {
	var l fair.Queue[string]
	for range 20 {
		l.Push(partyOf("a"), "a")
		l.Next()
	}
	l.Push(partyOf("a"), "a")
	for n := range 10_000 {
		l.Push(fair.Party{Key: fmt.Sprint("new", n), Funded: true}, "x")
		if x, _ := l.Next(); x == "a" {
			if n > 70 {
				t.Errorf("%d newcomers were served before it", n)
			}
			break
		}
	}
	for n := range 10_000 {
		l.Push(fair.Party{Key: fmt.Sprint("more", n)}, "x")
		l.Next()
	}
	if n := l.Remembered(); n > 300 {
		t.Errorf("the turns of %d are remembered", n)
	}
}

func TestBeforeIsWhatIsServedUntilTheNewEntry(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var l fair.Queue[string]
		names := make([]byte, rng.IntN(12))
		for i := range names {
			names[i] = "abCD"[rng.IntN(4)]
		}
		push(&l, string(names))
		for range rng.IntN(5) {
			l.Next()
		}
		who := "abCDe"[rng.IntN(5):][:1]
		before := l.Before(partyOf(who))
		l.Push(partyOf(who), "new")
		served := drain(&l)
		if got := served[:slices.Index(served, "new")]; !slices.Equal(got, before) {
			t.Fatalf("%s and %s: %v were served before, want %v", names, who, got, before)
		}
	}
}

func push(l *fair.Queue[string], names string) {
	count := map[rune]int{}
	for _, who := range names {
		count[who]++
		l.Push(partyOf(string(who)), fmt.Sprint(string(who), count[who]))
	}
}

func drain(l *fair.Queue[string]) (list []string) {
	for {
		x, ok := l.Next()
		if !ok {
			return list
		}
		list = append(list, x)
	}
}

// partyOf returns a party, which is on trial if its name is in capitals.
func partyOf(name string) fair.Party {
	return fair.Party{Key: name, Funded: strings.ToLower(name) == name}
}
