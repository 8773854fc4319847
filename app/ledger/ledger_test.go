package ledger_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/app/accounts"
	"agentproxy/app/ledger"
	"agentproxy/app/operator"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/campaign"
	"agentproxy/test/fake"
)

// TestMain sets how many histories of the books are drawn.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", fmt.Sprint(campaign.Rounds(100, 1000))); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// machine is a world with the random actions of agents, gateways and sellers.
type machine struct {
	*apptest.World
	t      *rapid.T
	agents []string
	ids    []string // sessions of all agents
	owner  map[string]string
	keys   map[string][]account.Spender // of agents, and the key that a call may come without
	used   map[string]int64             // by session and lease, as its gateway counts
	grant  map[string]int64
	leases map[string]string // the lease that a session's gateway has open
	n      int
}

func (m *machine) pick(list []string) (string, bool) {
	if len(list) == 0 {
		return "", false
	}
	return rapid.SampledFrom(list).Draw(m.t, "which"), true
}

// allowRefusal passes over the refusals that agents meet.
func (m *machine) allowRefusal(err error) {
	m.t.Helper()
	for _, fine := range []error{nil, billing.ErrInsufficientBalance, billing.ErrBudgetExceeded, session.ErrOver, session.ErrNotReady,
		session.ErrLimit, operator.ErrRefund, account.ErrKeyRestricted, account.ErrInvalidKey, account.ErrTooManyKeys, account.ErrKeyNotFound,
		account.ErrLastKey, domain.ErrInvalid, ports.ErrProvider, ports.ErrTimeout, account.ErrDisabled, catalog.ErrOutOfStock} {
		if err == nil || fine != nil && errors.Is(err, fine) {
			return
		}
	}
	m.t.Fatalf("%v", err)
}

// key returns the key of a call, which may be one that ended, or none.
func (m *machine) key(agent string) account.Spender {
	return rapid.SampledFrom(append(m.keys[agent], account.Spender{})).Draw(m.t, "key")
}

// limits returns limits, or none.
func (m *machine) limits(r *rapid.T) (l account.Limits) {
	if rapid.Bool().Draw(r, "total") {
		l.Budget.Total = new(domain.Money(rapid.Int64Range(1, 5_000_000).Draw(r, "total of")))
	}
	if rapid.Bool().Draw(r, "daily") && l.Budget.Total == nil {
		l.Budget.Daily = new(domain.Money(rapid.Int64Range(1, 3_000_000).Draw(r, "daily of")))
	}
	l.MaxSessions = rapid.IntRange(0, 2).Draw(r, "sessions")
	return l
}

func (m *machine) actions() map[string]func(*rapid.T) {
	ctx := context.Background()
	return map[string]func(*rapid.T){
		"register": func(*rapid.T) {
			if len(m.agents) < 4 {
				m.agents = append(m.agents, m.Register())
			}
		},
		"create": func(r *rapid.T) {
			if agent, any := m.pick(m.agents); any {
				product := rapid.SampledFrom([]string{apptest.Local, apptest.LocalAsync, apptest.Static, apptest.StaticAsync, apptest.Remote, apptest.RemoteAsync, apptest.RemoteStatic}).Draw(r, "product")
				f := apptest.Form(product)
				if f.Type == "dynamic" {
					f.Bytes = apptest.Gigabytes(rapid.SampledFrom([]string{"0.1", "1", "7.123"}).Draw(r, "gb"))
				} else {
					f.Quantity = new(rapid.SampledFrom([]int{1, 2}).Draw(r, "quantity"))
				}
				m.n++
				d, err := m.Sessions.Create(ctx, sessions.Create{AgentID: agent, By: m.key(agent), Form: f, Call: apptest.Call(fmt.Sprint(m.n))})
				m.allowRefusal(err)
				if err == nil {
					m.ids, m.owner[d.View.ID] = append(m.ids, d.View.ID), agent
				}
			}
		},
		"relay": func(r *rapid.T) { m.useLease(r) },
		"rotate": func(r *rapid.T) {
			if id, any := m.pick(m.ids); any {
				_, err := m.Sessions.Rotate(ctx, sessions.Rotate{AgentID: m.owner[id], SessionID: id})
				m.allowRefusal(err)
			}
		},
		"renew": func(r *rapid.T) {
			if id, any := m.pick(m.ids); any {
				_, err := m.Sessions.Renew(ctx, sessions.Renew{AgentID: m.owner[id], By: m.key(m.owner[id]), SessionID: id, Days: rapid.SampledFrom([]string{"", "90"}).Draw(r, "days")})
				m.allowRefusal(err)
			}
		},
		"price": func(r *rapid.T) {
			m.Reprice(apptest.Local, rapid.SampledFrom([]domain.Money{100_000, 333_333, 400_000, 700_001}).Draw(r, "price"))
		},
		"add traffic": func(r *rapid.T) {
			if id, any := m.pick(m.ids); any {
				_, err := m.Sessions.TopUp(ctx, sessions.TopUp{AgentID: m.owner[id], By: m.key(m.owner[id]), SessionID: id,
					Bytes: apptest.Gigabytes(rapid.SampledFrom([]string{"0.1", "0.777"}).Draw(r, "gb"))})
				m.allowRefusal(err)
			}
		},
		"auto top-up": func(r *rapid.T) {
			if id, any := m.pick(m.ids); any {
				auto := &session.AutoTopUp{BelowPercent: rapid.IntRange(1, 99).Draw(r, "percent"), Bytes: *apptest.Gigabytes("0.1"), MaxPerDay: 2}
				_, err := m.Sessions.Change(ctx, sessions.Change{AgentID: m.owner[id], SessionID: id, AutoTopUp: &auto})
				m.allowRefusal(err)
			}
		},
		"issue a key": func(r *rapid.T) {
			if agent, any := m.pick(m.agents); any {
				k, _, err := m.Accounts.Keys.Create(ctx, accounts.Caller{AgentID: agent, Scopes: account.Scopes},
					accounts.NewKey{Name: "key", Limits: m.limits(r)})
				m.allowRefusal(err)
				if err == nil {
					m.keys[agent] = append(m.keys[agent], account.Spender{KeyID: k.ID, Name: k.Name})
				}
			}
		},
		"change a budget": func(r *rapid.T) {
			if agent, any := m.pick(m.agents); any {
				l := m.limits(r)
				m.allowRefusal(m.Accounts.Keys.Change(ctx, accounts.Caller{AgentID: agent, Scopes: account.Scopes},
					accounts.KeyChange{ID: m.key(agent).KeyID, Total: &l.Budget.Total, Daily: &l.Budget.Daily, MaxSessions: &l.MaxSessions}))
			}
		},
		"end a key": func(r *rapid.T) {
			if agent, any := m.pick(m.agents); any {
				fate := rapid.SampledFrom([]accounts.Fate{accounts.End, accounts.Keep}).Draw(r, "sessions")
				m.allowRefusal(m.Accounts.Keys.Delete(ctx, accounts.Caller{AgentID: agent, Scopes: account.Scopes},
					m.key(agent).KeyID, accounts.EndChildren, fate))
			}
		},
		"terminate": func(*rapid.T) {
			if id, any := m.pick(m.ids); any {
				_, err := m.Sessions.Terminate(ctx, m.owner[id], id)
				m.allowRefusal(err)
			}
		},
		"disable and enable": func(r *rapid.T) {
			if agent, any := m.pick(m.agents); any && rapid.IntRange(0, 3).Draw(r, "seldom") == 0 {
				m.allowRefusal(m.Accounts.Disable(ctx, agent, "for the test"))
				m.allowRefusal(m.Accounts.Enable(ctx, agent))
			}
		},
		"adjust": func(r *rapid.T) {
			if agent, any := m.pick(m.agents); any {
				amount := domain.Money(rapid.Int64Range(-8_000_000, 8_000_000).Draw(r, "amount"))
				_, err := m.Wallet.Adjust(ctx, agent, amount, "for the test")
				m.allowRefusal(err)
			}
		},
		"refund": func(r *rapid.T) {
			if id, any := m.pick(m.ids); any {
				desk := operator.NewSessions(m.Store, m.Clock, m.IDs, m.Transitions, m.Hub)
				_, err := desk.Refund(ctx, operator.Refund{SessionID: id, Percent: rapid.IntRange(1, 60).Draw(r, "percent"), Reason: "for the test"})
				m.allowRefusal(err)
			}
		},
		"time passes": func(r *rapid.T) {
			m.Clock.Advance(time.Duration(rapid.SampledFrom([]int{1, 14, 300, 3600, 86400, 5 * 86400}).Draw(r, "seconds")) * time.Second)
		},
		"the seller fails": func(r *rapid.T) {
			m.Seller.Next(rapid.SampledFrom([]fake.Op{fake.Provision, fake.Rotate}).Draw(r, "op"),
				rapid.SampledFrom([]fake.Step{fake.LoseAnswer(), fake.LoseRequest(), fake.Refuse(procurement.Temporary)}).Draw(r, "step"))
		},
		"work":    func(*rapid.T) { m.allowRefusal(m.RunOrders()) },
		"settle":  func(*rapid.T) { m.allowRefusal(m.Tasks.Settle(ctx)) },
		"expire":  func(*rapid.T) { m.allowRefusal(m.Tasks.ExpireSessions(ctx)) },
		"trials":  func(*rapid.T) { m.allowRefusal(m.Tasks.ExpireTrials(ctx)) },
		"go back": func(*rapid.T) { m.allowRefusal(m.Tasks.Reclaim(ctx)) },
		"":        func(*rapid.T) { m.check() },
	}
}

// useLease is one ask of a gateway.
func (m *machine) useLease(r *rapid.T) {
	id, any := m.pick(m.ids)
	if !any {
		return
	}
	lease := m.leases[id]
	if lease == "" {
		m.n++
		lease = fmt.Sprint("l", m.n)
		m.leases[id] = lease
	}
	m.used[lease] += rapid.Int64Range(0, m.grant[lease]-m.used[lease]).Draw(r, "bytes")
	ask := traffic.LeaseRequest{SessionID: id, Lease: lease, Down: m.used[lease], Want: rapid.Int64Range(0, 80<<20).Draw(r, "want"),
		Close: rapid.IntRange(0, 3).Draw(r, "close") == 0}
	grants, err := m.Traffic.Renew(context.Background(), "r", []traffic.LeaseRequest{ask})
	m.allowRefusal(err)
	m.grant[lease] = grants[0].Granted
	if ask.Close || grants[0].Outcome > traffic.Waiting {
		m.leases[id] = ""
	}
}

// check holds at every moment.
func (m *machine) check() {
	for _, agent := range m.agents {
		b, err := m.Wallet.Balance(context.Background(), agent)
		m.allowRefusal(err)
		w := b.Wallet
		if w.Available.Trial < 0 || w.Available.Own < 0 || w.Held.Trial < 0 || w.Held.Own < 0 || b.Held < 0 {
			m.t.Fatalf("%s has %+v and holds %+v", agent, w.Available, w.Held)
		}
		m.checkKeys(agent, b)
		if w.TrialExpired && w.Available.Trial != 0 {
			m.t.Fatalf("the trial of %s is over, and it has %s of it", agent, w.Available.Trial)
		}
		if w.Held.Own > 0 && w.Available.Trial > 0 && len(m.Column(`SELECT id FROM ledger_entries WHERE agent_id = ?
			AND type = 'hold' AND own < 0 AND trial > 0`, agent)) > 0 {
			m.t.Fatal("a hold took own money before trial credit")
		}
	}
	m.Audit()
}

// checkKeys compares what the sessions of all keys hold and have cost, together and with those of none, with their account.
func (m *machine) checkKeys(agent string, b ledger.Balance) {
	var sum ports.KeySpent
	err := m.Store.View(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		of, err := tx.Sessions().SpentByKey(ctx, agent)
		sum = ports.KeySpent{}
		for _, k := range of {
			sum.Held, sum.Spent, sum.Live = sum.Held+k.Held, sum.Spent+k.Spent, sum.Live+k.Live
		}
		return err
	})
	m.allowRefusal(err)
	if sum.Held != b.Held || sum.Spent != b.Wallet.Charged-b.Wallet.Refunded+b.Unbooked || sum.Live != b.Wallet.LiveSessions {
		m.t.Fatalf("the sessions of all keys sum up to %+v, and %s has %+v", sum, agent, b)
	}
}

// settleAll reports all usage and runs every job and every periodic task.
func (m *machine) settleAll() {
	ctx := context.Background()
	for _, lease := range m.Column(`SELECT session_id || ' ' || id FROM leases`) {
		var id, name string
		_, _ = fmt.Sscan(lease, &id, &name)
		_, err := m.Traffic.Renew(ctx, "r", []traffic.LeaseRequest{{SessionID: id, Lease: name, Down: m.used[name], Close: true}})
		m.allowRefusal(err)
	}
	for range 6 {
		m.Clock.Advance(time.Minute)
		m.allowRefusal(m.RunOrders())
		m.allowRefusal(m.Tasks.Reclaim(ctx))
		m.allowRefusal(m.Tasks.Settle(ctx))
	}
	m.ExpectReconciled()
	m.check()
	for _, id := range m.ids {
		v, err := m.Sessions.Read(ctx, m.owner[id], id)
		m.allowRefusal(err)
		if v.Status.Over() && (v.Cost.Held != 0 || v.Type == session.Dynamic && v.Cost.Charged != m.runs(v)) {
			m.t.Fatalf("%s ended with %+v of %d bytes", id, v.Cost, v.Usage.Used())
		}
	}
}

// runs is the price of what a session used, by its additions as they were stored.
func (m *machine) runs(v sessions.View) (sum domain.Money) {
	type run struct {
		bytes int64
		price domain.Money
	}
	var list []run
	first := v.Bytes
	for _, row := range m.Column(`SELECT bytes || ' ' || price FROM session_topups WHERE session_id = ? ORDER BY no`, v.ID) {
		var r run
		_, _ = fmt.Sscan(row, &r.bytes, &r.price)
		list, first = append(list, r), first-r.bytes
	}
	merged := []run{{first, v.Price}}
	for _, r := range list {
		if last := &merged[len(merged)-1]; last.price == r.price {
			last.bytes += r.bytes
		} else {
			merged = append(merged, r)
		}
	}
	used := v.Usage.Used()
	for _, r := range merged {
		sum += billing.TrafficCharge(min(used, r.bytes), r.price)
		used = max(used-r.bytes, 0)
	}
	return sum
}

// rapidTB is a test whose failures are those of the sequence that was drawn, so
// that a shorter one is looked for.
type rapidTB struct {
	testing.TB
	r *rapid.T
}

func (d rapidTB) Errorf(format string, args ...any) { d.r.Errorf(format, args...) }
func (d rapidTB) Error(args ...any)                 { d.r.Error(args...) }
func (d rapidTB) Fatalf(format string, args ...any) { d.r.Fatalf(format, args...) }
func (d rapidTB) Fatal(args ...any)                 { d.r.Fatal(args...) }

// Whatever agents, gateways, sellers and clocks do, the books are right.
func TestBooks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w, done := apptest.Start(rapidTB{t, r}, apptest.Options{SessionLimit: 12, Exits: 20})
		defer done()
		m := &machine{World: w, t: r, owner: map[string]string{}, keys: map[string][]account.Spender{}, used: map[string]int64{},
			grant: map[string]int64{}, leases: map[string]string{}}
		m.agents = []string{m.Register()}
		r.Repeat(m.actions())
		m.settleAll()
	})
}
