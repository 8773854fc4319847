package procurement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentproxy/domain/procurement"
)

func TestThoseWhoWaitAreServedInTurns(t *testing.T) {
	for _, c := range []struct{ pushed, want string }{
		{"", ""}, {"a", "a1"}, {"aaa", "a1 a2 a3"}, {"aaab", "a1 b1 a2 a3"}, {"aaabbc", "a1 b1 c1 a2 b2 a3"}, {"cab", "c1 a1 b1"},
	} {
		var l procurement.Line[string]
		push(&l, c.pushed)
		if l.Len() != len(c.pushed) {
			t.Errorf("%s: %d wait", c.pushed, l.Len())
		}
		if got := strings.Join(drain(&l), " "); got != c.want || l.Len() != 0 {
			t.Errorf("%s: served %s, want %s", c.pushed, got, c.want)
		}
	}
}

// An agent with 500 entries does not delay another's, or by one if that comes again at once.
func TestOneWithManyEntriesDelaysAnotherByOne(t *testing.T) {
	var l procurement.Line[string]
	push(&l, strings.Repeat("a", 500))
	for n := range 100 {
		l.Next()
		l.Push("b", "b")
		if x, _ := l.Next(); x != "b" {
			t.Fatalf("time %d: served %s", n, x)
		}
		l.Push("b", "b")
		first, _ := l.Next()
		second, _ := l.Next()
		if !strings.HasPrefix(first, "a") || second != "b" {
			t.Fatalf("time %d: served %s and %s", n, first, second)
		}
	}
}

// Others that come for the first time, again and again, do not keep one from its turn.
func TestNewcomersDoNotKeepOneFromItsTurn(t *testing.T) {
	var l procurement.Line[string]
	l.Push("a", "a")
	l.Next()
	l.Push("a", "a")
	for n := range 200 {
		l.Push(fmt.Sprint("new", n), "x")
		if x, _ := l.Next(); x == "a" {
			return
		}
	}
	t.Error("200 newcomers were served before it")
}

func TestBeforeIsWhatIsServedUntilTheNewEntry(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var l procurement.Line[string]
		names := make([]byte, rng.IntN(12))
		for i := range names {
			names[i] = "abcd"[rng.IntN(4)]
		}
		push(&l, string(names))
		for range rng.IntN(5) {
			l.Next()
		}
		who := "abcde"[rng.IntN(5):][:1]
		before := l.Before(who)
		l.Push(who, "new")
		served := drain(&l)
		if got := served[:slices.Index(served, "new")]; !slices.Equal(got, before) {
			t.Fatalf("%s and %s: %v were served before, want %v", names, who, got, before)
		}
	}
}

func push(l *procurement.Line[string], names string) {
	count := map[rune]int{}
	for _, who := range names {
		count[who]++
		l.Push(string(who), fmt.Sprint(string(who), count[who]))
	}
}

func drain(l *procurement.Line[string]) (list []string) {
	for {
		x, ok := l.Next()
		if !ok {
			return list
		}
		list = append(list, x)
	}
}
