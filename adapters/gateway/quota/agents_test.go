package quota

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// tunnel is a connection that moved something a time ago.
type tunnel struct {
	place  Place
	quiet  time.Duration
	cut    bool
	looked *int
}

func (t *tunnel) Evict()                            { t.cut = true }
func (t *tunnel) Quiet(time.Duration) time.Duration { *t.looked++; return t.quiet }

// crowd opens tunnels of accounts.
type crowd struct {
	*Agents
	looked int
}

// open opens a tunnel that was quiet for a time, and returns nil if it is refused.
func (c *crowd) open(agent string, trial bool, limit int, quiet time.Duration) *tunnel {
	t := &tunnel{quiet: quiet, looked: &c.looked}
	e := Entry{Agent: agent, Trial: trial, Limit: limit, Owner: t, Spare: 5 * time.Second}
	if c.Enter(&t.place, e) != Entered {
		return nil
	}
	return t
}

// has returns how many places an agent has.
func (c *crowd) has(agent string) int { return c.byID[agent].count() }

// The figures are those of an attack: accounts that hold as many tunnels as they may and move a byte a second in
// each. The idle tunnels of another account stay, and it gets new ones.
func TestAFullGatewayServesWhoHasFew(t *testing.T) {
	t.Parallel()
	for _, a := range []struct {
		places, accounts, each int
		trial                  bool
	}{{352, 5, 100, true}, {1792, 2, 1000, false}, {30_848, 309, 100, true}, {30_848, 31, 1000, false}} {
		for _, victimTrial := range []bool{false, true} {
			c := &crowd{Agents: NewAgents(a.places, a.places/4)}
			var idle []*tunnel
			for range 20 {
				idle = append(idle, c.open("victim", victimTrial, 100, 4*time.Minute))
			}
			attack := func() {
				for n := range a.accounts {
					for range a.each {
						c.open(fmt.Sprint("attacker ", n), a.trial, a.each, 900*time.Millisecond)
					}
				}
			}
			attack()
			got := 0
			for range 10 {
				if c.open("victim", victimTrial, 100, 4*time.Minute) != nil {
					got++
				}
				attack()
			}
			kept := 0
			for _, i := range idle {
				if i != nil && !i.cut {
					kept++
				}
			}
			if kept != 20 || got != 10 || c.has("victim") != 30 {
				t.Errorf("%+v: a victim with the trial %v keeps %d of 20 and gets %d of 10, and has %d in the end", a,
					victimTrial, kept, got, c.has("victim"))
			}
			if u := c.Usage(3); u.Taken > a.places || !a.trial && (u.Taken != a.places || len(u.Largest) != min(3, a.accounts+1)) {
				t.Errorf("%+v: %+v", a, u)
			}
		}
	}
}

// Trial accounts leave three quarters of the places to others, even when they come first.
func TestTrialAccountsHaveAQuarterTogether(t *testing.T) {
	t.Parallel()
	const places = 1000
	c := &crowd{Agents: NewAgents(places, places/4)}
	for n := range 40 {
		for range 100 {
			c.open(fmt.Sprint("trial ", n), true, 100, 0)
		}
	}
	if u := c.Usage(0); u.Trial != 750 { // each may have 32 of the first three quarters
		t.Errorf("without others they have %d of %d", u.Trial, places)
	}
	for n := range 750 {
		if c.open("funded", false, 0, 0) == nil {
			t.Fatalf("tunnel %d of a funded account is refused; trial accounts have %d", n, c.Usage(0).Trial)
		}
	}
	if u := c.Usage(0); u.Trial != 250 || u.Taken != places {
		t.Errorf("beside a funded account they have %d of %d, want 250 of %d", u.Trial, u.Taken, places)
	}
	if c.open("funded", false, 0, 0) != nil {
		t.Error("the funded account has more than three quarters")
	}
	if c.open("trial 0", true, 100, 0) != nil {
		t.Error("a trial account has more than the others of the quarter")
	}
}

func TestSharesOfAFullGateway(t *testing.T) {
	t.Parallel()
	c := &crowd{Agents: NewAgents(100, 0)}
	var first []*tunnel
	for range 60 {
		first = append(first, c.open("a", false, 0, time.Second))
	}
	first[17].quiet = 4 * time.Second
	for range 40 {
		c.open("b", false, 0, time.Second)
	}
	if c.open("a", false, 0, 0) != nil {
		t.Error("the largest gets one more")
	}
	if c.open("b", false, 0, 0) == nil || !first[17].cut || c.has("a") != 59 || c.has("b") != 41 {
		t.Errorf("b has %d and a %d; the quietest of a is cut: %v", c.has("b"), c.has("a"), first[17].cut)
	}
	for range 100 {
		c.open("b", false, 0, 0)
	}
	if c.has("a") != 50 || c.has("b") != 50 {
		t.Errorf("a has %d and b %d, want half each", c.has("a"), c.has("b"))
	}
	for range 100 {
		c.open("c", false, 0, 0)
		c.open("d", false, 0, 0)
	}
	for agent, n := range map[string]int{"a": 32, "b": 32, "c": 18, "d": 18} {
		if c.has(agent) != n {
			t.Errorf("%s has %d, want %d: none is closed of the 32 that each keeps", agent, c.has(agent), n)
		}
	}
	if c.refused == 0 {
		t.Error("no refusal is counted")
	}
}

// An agent that has its share replaces what it does not use itself.
func TestAnAgentReplacesItsOwnQuietTunnels(t *testing.T) {
	t.Parallel()
	c := &crowd{Agents: NewAgents(40, 0)}
	var own []*tunnel
	for n := range 40 {
		own = append(own, c.open("a", false, 0, time.Duration(n%2)*6*time.Second))
	}
	for n := range 20 {
		if c.open("a", false, 0, 0) == nil {
			t.Fatalf("tunnel %d is refused", n)
		}
	}
	if c.open("a", false, 0, 0) != nil {
		t.Error("there is room although none is quiet")
	}
	for n, o := range own {
		if o.cut != (n%2 == 1) {
			t.Errorf("tunnel %d is cut: %v", n, o.cut)
		}
	}
	if !c.Closing() {
		t.Error("none is closing")
	}
	for _, o := range own {
		if o.cut && c.Enter(&o.place, Entry{Agent: "a", Owner: o}) != Full {
			t.Error("one that is cut enters again")
		}
		c.Leave(&o.place)
	}
	if c.Closing() || c.has("a") != 20 {
		t.Errorf("after their end %d are left, %d closing", c.has("a"), c.closing)
	}
}

// The ranking is right whatever comes and goes, and a full gateway looks at few connections for each new one.
func TestTheRankingIsRight(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	c := &crowd{Agents: NewAgents(500, 125)}
	var open []*tunnel
	for range 5000 {
		before := c.looked
		if n := r.IntN(30); r.IntN(3) > 0 || len(open) == 0 {
			agent := fmt.Sprint(n * n * n / 900)
			trial := n%3 == 0 // so an agent's account may become another one
			if o := c.open(agent, trial, 0, time.Duration(r.IntN(10))*time.Second); o != nil {
				open = append(open, o)
			}
		} else {
			i := r.IntN(len(open))
			c.Leave(&open[i].place)
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
		}
		if c.looked-before > quietSample {
			t.Fatalf("%d connections are looked at for one", c.looked-before)
		}
		most, conns, trials := 0, 0, 0
		for _, a := range c.byID {
			most, conns = max(most, a.count()), conns+a.count()
			if a.trial {
				trials += a.count()
			}
			for i, p := range a.places {
				if p.agent != a || p.index != i {
					t.Fatal("a place is not its agent's")
				}
			}
		}
		u := c.Usage(1000)
		if c.Largest() != most || u.Taken != conns || u.Taken > 500 || u.Trial != trials || u.Agents != len(c.byID) ||
			len(u.Largest) != u.Agents {
			t.Fatalf("%d is most, counted %d; %+v, counted %d and %d of trials", c.Largest(), most, u, conns, trials)
		}
		for i := 1; i < len(u.Largest); i++ {
			if u.Largest[i].Places > u.Largest[i-1].Places {
				t.Fatal("the largest are not first")
			}
		}
	}
	for _, o := range open {
		c.Leave(&o.place)
	}
	if len(c.byID) != 0 || c.closing != 0 || c.conns() != 0 {
		t.Errorf("%d agents, %d closing, %d connections are left", len(c.byID), c.closing, c.conns())
	}
}

// BenchmarkEnter is a connection that enters a gateway with 30,848 places and 1,000 agents, and leaves.
func BenchmarkEnter(b *testing.B) {
	for _, full := range []bool{false, true} {
		b.Run(fmt.Sprintf("full=%v", full), func(b *testing.B) {
			c := &crowd{Agents: NewAgents(30_848, 30_848/4)}
			for n := range 1000 {
				for range 30 {
					c.open(fmt.Sprint(n), false, 0, 0)
				}
			}
			for full && c.conns() < c.places {
				c.open("large", false, 0, 0)
			}
			o := &tunnel{looked: &c.looked}
			e := Entry{Agent: "one", Owner: o}
			b.ReportAllocs()
			for b.Loop() {
				c.Enter(&o.place, e)
				c.Leave(&o.place)
				if full {
					c.open("large", false, 0, 0)
				}
			}
		})
	}
}
