package ledger_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	statements(t, w)
}

func TestStatementsOnPostgres(t *testing.T) {
	t.Parallel()
	statements(t, apptest.OpenPostgres(t))
}

// statements moves money in three months and compares each statement with the entries themselves.
func statements(t *testing.T, w *apptest.World) {
	month := func(n int) time.Time {
		return time.Date(w.Clock.Now().Year(), w.Clock.Now().Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, n, 0)
	}
	first, second, third := month(1), month(2), month(3)
	w.Clock.Set(second.Add(-time.Microsecond)) // the last moment of the first month
	agent, other := w.Register(), w.Register()
	_, err := w.Wallet.Adjust(t.Context(), agent, 50*domain.Dollar, "for the test")
	apptest.OK(t, err)
	_, err = w.Wallet.Adjust(t.Context(), other, 3*domain.Dollar, "for the test")
	apptest.OK(t, err)
	var ids []string
	buyers := map[string]string{}
	for _, key := range []string{"key_a", "key_b", "key_a"} {
		f := apptest.Form(apptest.Local)
		f.Bytes = apptest.Gigabytes("0.1")
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, By: account.Spender{KeyID: key}})
		apptest.OK(t, err)
		ids, buyers[d.View.ID] = append([]string{d.View.ID}, ids...), key
	}
	w.UseBytes(ids[2], "a", 10_000_001)
	const lastHour = 4000 // millionths of a dollar, for that at 0.40 a GB
	for _, of := range [][]string{{agent, other}, {other}, nil} {
		apptest.OK(t, w.Store.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			unbooked, err := tx.Overview().Unbooked(ctx, of...)
			if want := len(of) != 1; (unbooked[agent] == lastHour) != want || unbooked[other] != 0 {
				t.Errorf("not booked of %v: %v", of, unbooked)
			}
			return err
		}))
	}
	w.Clock.Set(second)
	w.UseBytes(ids[2], "b", 20_000_000)
	w.Buy(agent, apptest.Static)
	_, err = w.Sessions.Terminate(t.Context(), agent, ids[2])
	apptest.OK(t, err)
	w.Clock.Set(third)
	_, err = w.Sessions.Terminate(t.Context(), agent, ids[0])
	apptest.OK(t, err)
	_, err = w.Sessions.TopUp(t.Context(), sessions.TopUp{AgentID: agent, SessionID: ids[1], Bytes: apptest.Gigabytes("0.1")})
	apptest.OK(t, err)

	read := func(of time.Time, page domain.Page) ledger.Statement {
		s, err := w.Wallet.Statement(t.Context(), agent, of.Format("2006-01"), page)
		apptest.OK(t, err)
		return s
	}
	whole := domain.Page{Number: 1, Size: 100}
	entries, err := w.Wallet.Transactions(t.Context(), agent, ports.LedgerFilter{}, whole)
	apptest.OK(t, err)
	closing := domain.Money(0)
	// The sums of months are kept of no entries, of all, and of all but those of the last moments.
	for range 3 {
		closing = 0
		for i, from := range []time.Time{first, second, third} {
			s := read(from, whole)
			apptest.Equal(t, "opening", s.Opening, closing)
			byType, bySession, last := map[billing.Type]domain.Money{}, map[string]domain.Money{}, closing
			for j := len(entries.Items) - 1; j >= 0; j-- {
				if e := entries.Items[j]; !e.At.Before(s.From) && e.At.Before(s.To) {
					byType[e.Type] += e.Amount()
					last = e.BalanceAfter
					if e.SessionID != "" {
						bySession[e.SessionID] += e.Amount()
					}
				}
			}
			for typ, want := range byType {
				apptest.Equal(t, string(typ), s.ByType[typ], want)
			}
			apptest.Equal(t, "closing", s.Closing, last)
			// The charge of the last hour of the first month is booked in the second.
			apptest.Equal(t, "of the month before", s.OfBefore, []domain.Money{0, lastHour, 0}[i])
			apptest.Equal(t, "in the month after", s.Later, []domain.Money{lastHour, 0, 0}[i])
			stats, err := w.Stats.Series(t.Context(), agent, ledger.Range{From: s.From, To: s.To, Step: time.Hour})
			apptest.OK(t, err)
			var used domain.Money
			for _, b := range stats {
				used += b.Charged - b.Refunded
			}
			if i < 2 { // the third goes on
				apptest.Equal(t, "what the series has", used, s.Spent-s.OfBefore+s.Later)
			}
			apptest.Equal(t, "sessions", s.Items.Total, len(bySession))
			for _, item := range s.Items.Items {
				apptest.Equal(t, item.SessionID, item.Amount, bySession[item.SessionID])
			}
			partsAreTheAccount(t, w, agent, s, buyers)
			if want := []int{3, 2, 2}[i]; len(s.Items.Items) != want {
				t.Errorf("month %d has %d sessions, want %d", i, len(s.Items.Items), want)
			}
			closing = s.Closing
		}
		for range 2 { // PostgreSQL sums what was there at the end of the run before
			apptest.OK(t, w.DB.SumUp(t.Context()))
		}
	}
	apptest.Equal(t, "the balance", closing, w.Balance(agent))

	one := read(first, domain.Page{Number: 1, Size: 2})
	w.Buy(agent, apptest.Static)
	rest := read(first, domain.Page{Number: 1, Size: 2, After: one.Items.Next})
	if second := read(first, domain.Page{Number: 2, Size: 2}); !reflect.DeepEqual(second.Items.Items, rest.Items.Items) {
		t.Errorf("the second page: %+v, %+v", second.Items, rest.Items)
	}
	faults, _, err := w.DB.Verify(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "faults", len(faults), 0)
	if len(one.Items.Items) != 2 || len(rest.Items.Items) != 1 || rest.Items.Next != 0 || rest.Items.Items[0].SessionID != ids[2] {
		t.Errorf("pages: %+v, %+v", one.Items, rest.Items)
	}
	for _, text := range []string{"", "2026", "2026-13", "2026-1", "2026-01-01", "x", first.AddDate(0, -1, 0).Format("2006-01"),
		third.AddDate(0, 1, 0).Format("2006-01"), "99999-01"} {
		_, err := w.Wallet.Statement(t.Context(), agent, text, whole)
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
}

// partsAreTheAccount compares the sums by key of a month with its statement, and with what each key has alone.
func partsAreTheAccount(t *testing.T, w *apptest.World, agent string, whole ledger.Statement, buyers map[string]string) {
	t.Helper()
	q := ledger.StatementQuery{AgentID: agent, Month: whole.From.Format("2006-01"), ByKey: true, Page: domain.Page{Number: 1, Size: 100}}
	s, err := w.Wallet.ReadStatement(t.Context(), q)
	apptest.OK(t, err)
	var opening, ending, spent, ofBefore, later domain.Money
	bySession := map[string]domain.Money{}
	for _, i := range whole.Items.Items {
		bySession[buyers[i.SessionID]] += i.Amount
	}
	for _, k := range s.ByKey {
		opening, ending, spent = opening+k.Opening, ending+k.Closing(), spent+k.Spent()
		if k.Rest {
			apptest.Equal(t, "the key of the rest", k.Key, "")
			continue
		}
		apptest.Equal(t, "what "+k.Key+" moved", k.Amount, bySession[k.Key])
		q.Key, q.ByKey = k.Key, false
		alone, err := w.Wallet.ReadStatement(t.Context(), q)
		apptest.OK(t, err)
		if alone.Opening != k.Opening || alone.Closing != k.Closing() || alone.Spent != k.Spent() {
			t.Errorf("%s alone: %+v, as a part: %+v", k.Key, alone, k)
		}
		for _, i := range alone.Items.Items {
			apptest.Equal(t, "the buyer of "+i.SessionID, buyers[i.SessionID], k.Key)
		}
		ofBefore, later = ofBefore+alone.OfBefore, later+alone.Later
	}
	apptest.Equal(t, "the sum of openings", opening, whole.Opening)
	apptest.Equal(t, "the sum of closings", ending, whole.Closing)
	apptest.Equal(t, "the sum of what is spent", spent, whole.Spent)
	apptest.Equal(t, "of before and later", [2]domain.Money{ofBefore, later}, [2]domain.Money{whole.OfBefore, whole.Later})
	var moved, balance domain.Money
	f := ports.LedgerFilter{From: whole.From, To: whole.To}
	sums, err := w.Wallet.TransactionsByKey(t.Context(), agent, f)
	apptest.OK(t, err)
	for _, k := range sums {
		if moved += k.Amount; k.Key != "" {
			apptest.Equal(t, "the entries of "+k.Key, k.Amount, bySession[k.Key])
			f.Key = k.Key
			list, err := w.Wallet.Transactions(t.Context(), agent, f, domain.Page{Number: 1, Size: 100})
			apptest.OK(t, err)
			apptest.Equal(t, "the number of entries of "+k.Key, list.Total, k.Entries)
		}
	}
	balance = whole.Closing - whole.Opening
	apptest.Equal(t, "the sum of entries", moved, balance)
	partsAreTheReport(t, w, agent)
}

// partsAreTheReport compares the usage report, the series and the overview of each key with those of the account.
func partsAreTheReport(t *testing.T, w *apptest.World, agent string) {
	t.Helper()
	r, err := w.Wallet.Report(t.Context(), ledger.ReportQuery{AgentID: agent, Period: "month", ByKey: true, Page: domain.Page{Number: 1, Size: 1}})
	apptest.OK(t, err)
	var totals ports.Totals
	for _, k := range r.ByKey {
		totals = totals.Plus(k.Totals)
	}
	r, err = w.Wallet.UsageReport(t.Context(), agent, "month", domain.Page{})
	apptest.OK(t, err)
	apptest.Equal(t, "the totals of keys", totals, r.Totals)
	over := ledger.Range{From: r.From, To: r.To, Step: session.Day}
	all, err := w.Stats.Overview(t.Context(), agent)
	apptest.OK(t, err)
	series := func(key string) (sum ports.Totals) {
		list, err := w.Stats.KeySeries(t.Context(), agent, key, over)
		apptest.OK(t, err)
		for _, h := range list {
			sum = sum.Plus(h.Totals)
		}
		return sum
	}
	account := series("")
	var keys ports.Totals
	var bytes, rotations int64
	for _, key := range []string{"key_a", "key_b"} { // all that used traffic was bought by one of them
		o, err := w.Stats.KeyOverview(t.Context(), agent, key)
		apptest.OK(t, err)
		bytes, rotations, keys = bytes+o.UsedBytes, rotations+o.Rotations, keys.Plus(series(key))
		if want := map[string]int{"key_a": 2, "key_b": 1}[key]; o.Total != want || o.Active+o.Creating > want {
			t.Errorf("%s has %+v, want %d sessions", key, o, want)
		}
	}
	apptest.Equal(t, "the bytes of keys", [2]int64{bytes, rotations}, [2]int64{all.UsedBytes, all.Rotations})
	apptest.Equal(t, "the series of keys", [3]int64{keys.Up, keys.Down, keys.Connections},
		[3]int64{account.Up, account.Down, account.Connections})
}

// What a session used at several prices is in the usage report and in the statements as it is in the
// ledger, whether or not it is booked yet.
func TestReportsOfTrafficThatWasAdded(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	month := time.Date(w.Clock.Now().Year(), w.Clock.Now().Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, 1, 0)
	w.Clock.Set(month.Add(-2 * time.Hour))
	agent := w.Register()
	v := w.BuySmall(agent) // 0.1 GB at 0.40
	add := func(price string) {
		w.Reprice(apptest.Local, apptest.Dollars(price))
		_, err := w.Sessions.TopUp(t.Context(), sessions.TopUp{AgentID: agent, SessionID: v.ID, Bytes: apptest.Gigabytes("0.1")})
		apptest.OK(t, err)
	}
	reported := func(period string) (charged domain.Money) {
		for _, page := range []domain.Page{{}, {Number: 1, Size: 5}} {
			r, err := w.Wallet.UsageReport(t.Context(), agent, period, page)
			apptest.OK(t, err)
			charged = r.Totals.Charged
			if len(r.Sessions.Items) != 1 || r.Sessions.Items[0].SessionID != v.ID || r.Sessions.Items[0].Charged != charged {
				t.Errorf("the sessions of %+v: %+v", page, r.Sessions.Items)
			}
		}
		return charged
	}
	statement := func(of time.Time) ledger.Statement {
		s, err := w.Wallet.Statement(t.Context(), agent, of.Format("2006-01"), domain.Page{Number: 1, Size: 5})
		apptest.OK(t, err)
		return s
	}
	add("0.8")
	w.UseBytes(v.ID, "a", 150_000_000)
	apptest.Equal(t, "reported before it is booked", reported("day"), apptest.Dollars("0.08"))
	w.Clock.Set(month.Add(time.Hour))
	add("0.2")
	w.UseBytes(v.ID, "b", 100_000_000)
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "charged", w.Read(agent, v.ID).Cost.Charged, apptest.Dollars("0.13"))
	apptest.Equal(t, "reported of the day", reported("day"), apptest.Dollars("0.05"))
	apptest.Equal(t, "reported of the week", reported("week"), apptest.Dollars("0.13"))

	first, second := statement(month.AddDate(0, 0, -1)), statement(month)
	apptest.Equal(t, "closing and opening", first.Closing, second.Opening)
	apptest.Equal(t, "held in the first month", first.ByType[billing.HoldEntry], -apptest.Dollars("0.12"))
	apptest.Equal(t, "held in the second", second.ByType[billing.HoldEntry], -apptest.Dollars("0.02"))
	apptest.Equal(t, "released", second.ByType[billing.Release], apptest.Dollars("0.01"))
	apptest.Equal(t, "of the session", first.Items.Items[0].Amount+second.Items.Items[0].Amount, -apptest.Dollars("0.13"))
	apptest.Equal(t, "the balance", second.Closing, w.Balance(agent))
	apptest.Equal(t, "what is left", w.Balance(agent), apptest.Dollars("9.87"))
}
