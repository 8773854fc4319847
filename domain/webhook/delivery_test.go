package webhook_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/webhook"
)

const hook = "https://hooks.example/x"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func endpoint() webhook.Endpoint {
	return webhook.Endpoint{AgentID: "agt_1", URL: hook, Version: 1}
}

// in is a delivery in a status that was tried once.
func in(status webhook.Status) webhook.Delivery {
	d := webhook.NewDelivery("dlv_1", webhook.Event{ID: "evt_1", AgentID: "agt_1", Type: webhook.SessionActive}, now.Add(-time.Hour))
	d.Status, d.Attempts, d.Tries = status, 1, 1
	if status != webhook.Pending {
		d.NextAttemptAt = time.Time{}
	}
	return d
}

func answered(code int) webhook.Outcome { return webhook.Outcome{URL: hook, StatusCode: code} }

// outcomes are the sorts of answer.
var outcomes = map[string]webhook.Outcome{
	"200":       answered(200),
	"299":       answered(299),
	"101":       answered(101),
	"302":       answered(302),
	"404":       answered(404),
	"410":       answered(410),
	"500":       answered(500),
	"no answer": {URL: hook, Err: "the endpoint's port is closed"},
	"silence":   {URL: hook},
	"old 200":   {URL: "https://old.example", StatusCode: 200},
	"old 410":   {URL: "https://old.example", StatusCode: 410},
}

// cell is what an outcome makes of a delivery and of its endpoint.
type cell struct {
	status   webhook.Status
	endpoint webhook.State
	failing  bool
}

func TestEveryStatusByEveryOutcome(t *testing.T) {
	retry := cell{webhook.Pending, webhook.Enabled, true}
	took := cell{webhook.Delivered, webhook.Enabled, false}
	off := cell{webhook.Failed, webhook.Disabled, false}
	want := map[webhook.Status]map[string]cell{
		webhook.Pending: {"200": took, "299": took, "101": retry, "302": retry, "404": retry, "410": off, "500": retry,
			"no answer": retry, "silence": retry, "old 200": took, "old 410": {webhook.Pending, webhook.Enabled, false}},
		webhook.Delivered: {"410": {webhook.Delivered, webhook.Disabled, false}, "200": took, "299": took, "old 200": took, "old 410": took},
		webhook.Failed:    {"410": off, "200": took, "299": took, "old 200": took, "old 410": {webhook.Failed, webhook.Enabled, false}},
	}
	for _, status := range []webhook.Status{webhook.Delivered, webhook.Failed} {
		for _, failure := range []string{"101", "302", "404", "500", "no answer", "silence"} {
			want[status][failure] = cell{status, webhook.Enabled, true}
		}
	}
	for _, status := range webhook.Statuses {
		for name, o := range outcomes {
			t.Run(fmt.Sprintf("%s and %s", status, name), func(t *testing.T) {
				cell, decided := want[status][name]
				if !decided {
					t.Fatal("not decided")
				}
				d, e := in(status).After(endpoint(), o, now, 0.5)
				if d.Status != cell.status || e.State() != cell.endpoint || e.FailingSince.IsZero() == cell.failing {
					t.Errorf("%s, %s, failing since %v; want %+v", d.Status, e.State(), e.FailingSince, cell)
				}
				if d.Attempts != 2 {
					t.Errorf("%d attempts, want 2", d.Attempts)
				}
				if (d.Status == webhook.Pending) == d.NextAttemptAt.IsZero() {
					t.Errorf("%s with a next attempt at %v", d.Status, d.NextAttemptAt)
				}
				if status != webhook.Delivered && (d.LastStatusCode != o.StatusCode || (d.LastError == "") != o.OK()) {
					t.Errorf("last status %d, last error %q", d.LastStatusCode, d.LastError)
				}
				if status == webhook.Delivered && (d.LastStatusCode != 0 || d.LastError != "") {
					t.Errorf("a success was forgotten: %d %q", d.LastStatusCode, d.LastError)
				}
			})
		}
	}
}

// schedule is what the contract promises.
var schedule = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour}

func TestRetriesFollowTheSchedule(t *testing.T) {
	for _, c := range []struct {
		rnd, part float64
	}{{0, 0.8}, {1.0 / 3, 0.8 + 0.4/3}, {0.5, 1}, {0.999999, 1.2}} {
		d := webhook.NewDelivery("dlv_1", webhook.Event{}, now)
		at, e := now, endpoint()
		if !d.NextAttemptAt.Equal(now) || d.Status != webhook.Pending {
			t.Fatalf("a new delivery: %+v", d)
		}
		for i, pause := range schedule {
			e.FailingSince = time.Time{} // how long it fails is another test
			d, e = d.After(e, answered(500), at, c.rnd)
			wait, want := d.NextAttemptAt.Sub(at), time.Duration(float64(pause)*c.part)
			if (wait-want).Abs() > time.Second || d.Status != webhook.Pending {
				t.Errorf("after attempt %d with %v: %s for %v, want %v", i+1, c.rnd, d.Status, wait, want)
			}
			if wait != wait.Truncate(time.Microsecond) {
				t.Errorf("%v is finer than a store keeps", wait)
			}
			at = d.NextAttemptAt
		}
		d, e = d.After(e, answered(500), at, c.rnd)
		if d.Status != webhook.Failed || d.Attempts != 9 || e.State() != webhook.Enabled {
			t.Errorf("after the last attempt: %+v %s", d, e.State())
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		claim       string
		tries       int
		asked, want time.Duration
	}{
		{"a longer pause is honoured", 1, time.Hour, time.Hour},
		{"a shorter one is not", 2, time.Second, 5 * time.Minute},
		{"none is the schedule", 2, 0, 5 * time.Minute},
		{"a negative one is none", 2, -time.Hour, 5 * time.Minute},
		{"a day is honoured", 1, 24 * time.Hour, 24 * time.Hour},
		{"more than a day is a day", 1, 240 * time.Hour, 24 * time.Hour},
	} {
		t.Run(c.claim, func(t *testing.T) {
			d := in(webhook.Pending)
			d.Tries = c.tries - 1
			d, _ = d.After(endpoint(), webhook.Outcome{URL: hook, StatusCode: 429, RetryAfter: c.asked}, now, 0.5)
			if got := d.NextAttemptAt.Sub(now); got != c.want {
				t.Errorf("waits %v, want %v", got, c.want)
			}
		})
	}
}

func TestRedeliver(t *testing.T) {
	for _, status := range webhook.Statuses {
		d := in(status)
		d.Tries = 7
		if status == webhook.Pending {
			d.NextAttemptAt = now.Add(time.Hour)
		}
		again, err := d.Redeliver(endpoint(), now)
		wantTries := 0
		if status == webhook.Pending {
			wantTries = 7 // asking often does not make the schedule longer
		}
		if err != nil || again.Status != webhook.Pending || !again.NextAttemptAt.Equal(now) || again.Tries != wantTries || again.Attempts != 1 {
			t.Errorf("%s: %+v, %v", status, again, err)
		}
		if again.ID != d.ID || again.EventID != d.EventID {
			t.Errorf("%s: another id: %+v", status, again)
		}
		off := endpoint()
		off.DisabledAt = now
		for e, want := range map[webhook.Endpoint]error{off: webhook.ErrDisabled, {}: webhook.ErrNoEndpoint} {
			if got, err := d.Redeliver(e, now); err != want || got != d || !errors.Is(err, domain.ErrInvalid) {
				t.Errorf("%s at an endpoint that is %s: %+v, %v", status, e.State(), got, err)
			}
		}
	}
	t.Run("what is due already stays due since then", func(t *testing.T) {
		d := in(webhook.Pending)
		if again, _ := d.Redeliver(endpoint(), now); again != d {
			t.Errorf("%+v, want %+v", again, d)
		}
	})
	t.Run("what had failed for good is tried by the whole schedule again", func(t *testing.T) {
		d := in(webhook.Failed)
		d.Attempts, d.Tries = 9, 9
		d, _ = d.Redeliver(endpoint(), now)
		d, _ = d.After(endpoint(), answered(500), now, 0.5)
		if d.Status != webhook.Pending || !d.NextAttemptAt.Equal(now.Add(schedule[0])) || d.Attempts != 10 {
			t.Errorf("%+v", d)
		}
	})
}

func TestAbandon(t *testing.T) {
	off := endpoint()
	off.DisabledAt = now
	for _, status := range webhook.Statuses {
		for _, e := range []webhook.Endpoint{endpoint(), off, {}} {
			d := in(status)
			got, ends := d.Abandon(e), status == webhook.Pending && e.State() != webhook.Enabled
			if !ends && got != d {
				t.Errorf("%s at an endpoint that is %s became %+v", status, e.State(), got)
			}
			if ends && (got.Status != webhook.Failed || !got.NextAttemptAt.IsZero() || got.LastError == "" || got.Attempts != d.Attempts) {
				t.Errorf("at an endpoint that is %s: %+v", e.State(), got)
			}
		}
	}
}

func TestProblemsHaveARemedy(t *testing.T) {
	for code, want := range map[int]string{302: "redirects are not followed", 410: "set webhook_url again", 500: "500", 404: "2xx"} {
		if got := answered(code).Problem(); !strings.Contains(got, want) {
			t.Errorf("%d: %q, want %q in it", code, got, want)
		}
	}
}

func TestTypesAreListed(t *testing.T) {
	if len(webhook.Types) != 20 {
		t.Errorf("%d types, the contract has 20", len(webhook.Types))
	}
	seen := map[webhook.Type]bool{}
	for _, typ := range webhook.Types {
		group, name, ok := strings.Cut(string(typ), ".")
		letters := strings.Trim(group+name, "abcdefghijklmnopqrstuvwxyz_") == ""
		if !ok || group == "" || name == "" || !letters || seen[typ] || !typ.Known() {
			t.Errorf("type %q", typ)
		}
		seen[typ] = true
	}
	for _, unknown := range []webhook.Type{"", "session", "session.created"} {
		if unknown.Known() || slices.Contains(webhook.Types, unknown) {
			t.Errorf("%q is known", unknown)
		}
	}
}
