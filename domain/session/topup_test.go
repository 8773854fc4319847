package session_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

// What is charged in all is the price of each run by itself, rounded down, whenever it is settled.
func TestRunsAreChargedByTheirOwnPrices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prices := rapid.SampledFrom([]domain.Money{1, 250_000, 333_333, 400_001})
		bought := func() int64 { return rapid.Int64Range(1, 2000).Draw(t, "MB") * session.TrafficStep }
		s := dynamic()
		s.Price, s.Bytes = prices.Draw(t, "price"), bought()
		s.Money.Held = billing.Funds{Own: billing.TrafficHold(s.Bytes, s.Price)}
		type part struct {
			bytes int64
			price domain.Money
		}
		parts := []part{{s.Bytes, s.Price}}
		held, used := s.Money.Held.Total(), int64(0)
		cost := func(used int64) (sum domain.Money) {
			for _, p := range parts {
				n := max(min(used, p.bytes), 0)
				sum, used = sum+billing.TrafficCharge(n, p.price), used-p.bytes
			}
			return sum
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n, price := bought(), prices.Draw(t, "price")
				last := &parts[len(parts)-1]
				after, err := s.TopUp(n, price)
				if full := len(s.TopUps.Runs) == session.MaxRuns && last.price != price; (err != nil) != full {
					t.Fatalf("%d runs: %v", len(s.TopUps.Runs), err)
				}
				if err != nil {
					return
				}
				x := billing.TrafficHold(n, price)
				after.Money.Held.Own, held = after.Money.Held.Own+x, held+x
				if last.price == price {
					last.bytes += n
				} else {
					parts = append(parts, part{n, price})
				}
				s = after
			},
			"use": func(t *rapid.T) { used = rapid.Int64Range(used, s.Bytes).Draw(t, "used") },
			"settle": func(*rapid.T) {
				due := s.ChargeDue(used)
				s.Money.Held.Own, s.Money.Charged.Own = s.Money.Held.Own-due, s.Money.Charged.Own+due
			},
			"": func(t *rapid.T) {
				charged := s.Money.Charged.Total()
				if s.Money.Held.Total() < 0 || charged+s.Money.Held.Total() != held {
					t.Fatalf("held %s, charged %s of %s", s.Money.Held.Total(), charged, held)
				}
				if want := cost(used); charged+s.ChargeDue(used) != want || s.TrafficCost(used) != want {
					t.Fatalf("%d bytes of %v cost %s, want %s", used, parts, charged+s.ChargeDue(used), want)
				}
				if len(s.TopUps.Runs) >= len(parts) {
					t.Fatalf("%d runs of %d", len(s.TopUps.Runs), len(parts))
				}
			},
		})
	})
}

// dynamic is an active session of 1 GB.
func dynamic() session.Session {
	return session.Session{ID: "sess_1", Type: session.Dynamic, Status: session.Active, Bytes: billing.GB, Price: 250_000}
}

func TestWhatCannotBeToppedUp(t *testing.T) {
	over, creating, static := dynamic(), dynamic(), dynamic()
	over.Status, creating.Status, static.Type = session.Expired, session.Creating, session.Static
	for what, c := range map[string]struct {
		s     session.Session
		bytes int64
	}{
		"an ended one": {over, billing.GB}, "one that is created": {creating, billing.GB}, "a static one": {static, billing.GB},
		"nothing": {dynamic(), 0}, "a negative amount": {dynamic(), -billing.GB}, "a byte": {dynamic(), 1},
		"more than a session may have": {dynamic(), session.MaxGB * billing.GB},
	} {
		if after, err := c.s.TopUp(c.bytes, 1); err == nil || after.Bytes != c.s.Bytes {
			t.Errorf("%s: %d bytes, %v", what, after.Bytes, err)
		}
	}
	s := dynamic()
	for i := range session.MaxRuns {
		var err error
		if s, err = s.TopUp(billing.GB, domain.Money(1+i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.TopUp(billing.GB, 999); err == nil {
		t.Error("a further price was taken")
	}
	if more, err := s.TopUp(billing.GB, session.MaxRuns); err != nil || len(more.TopUps.Runs) != session.MaxRuns {
		t.Errorf("more at the last price: %v", err)
	}
}

// An addition leaves so much that none is due after it, whatever the settings.
func TestAutoTopUpIsNotDueAfterIt(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		s := dynamic()
		s.Bytes = rapid.Int64Range(1, 1_000_000).Draw(t, "bought") * session.TrafficStep
		s = s.WithAutoTopUp(session.AutoTopUp{BelowPercent: rapid.IntRange(1, 99).Draw(t, "percent"),
			Bytes: rapid.Int64Range(1, 1_000_000).Draw(t, "added") * session.TrafficStep, MaxPerDay: 1000})
		used := rapid.Int64Range(0, s.Bytes).Draw(t, "used")
		due := s.AutoTopUpDue(used, at)
		if used == s.Bytes && !due {
			t.Fatal("not due at the end")
		}
		if !due {
			return
		}
		after, err := s.TopUp(s.TopUps.Auto.Bytes, s.Price)
		if err != nil || after.AutoTopUpDue(used, at) {
			t.Fatalf("due again, %v", err)
		}
	})
}

func TestAutoTopUpsOfADay(t *testing.T) {
	day := time.Date(2026, 3, 1, 23, 59, 59, 0, time.UTC)
	s := dynamic().WithAutoTopUp(session.AutoTopUp{BelowPercent: 10, Bytes: billing.GB, MaxPerDay: 2})
	for _, step := range []struct {
		at      time.Time
		auto    bool
		allowed bool
	}{
		{day, true, true}, {day, false, true}, {day, true, true}, {day, true, false}, {day.Add(-24 * time.Hour), true, false},
		{day.Add(time.Second), true, true}, {day, true, true}, {day.Add(time.Second), true, false}, {day.Add(48 * time.Hour), true, true},
	} {
		err := s.MayAutoTopUp(s.Price, step.at)
		if step.auto && (err == nil) != step.allowed {
			t.Errorf("at %s after %d of that day: %v", step.at, s.TopUps.AutoCount, err)
		}
		if err == nil || !step.auto {
			s = s.HeldForTopUp(1, step.auto, step.at)
		}
	}
}
