package app_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// pending lists the jobs that were inserted and not worked yet, waiting those
// that wait for the time of a session or of a trial.
func (w *world) pending() []ports.Job { return w.jobs("kind = 'drive-orders'") }
func (w *world) waiting() []ports.Job {
	return w.jobs("kind NOT IN ('drive-orders', 'deliver')")
}

func (w *world) jobs(which string) (jobs []ports.Job) {
	w.t.Helper()
	rows, err := w.db.Writer().Query(`SELECT kind, session, due FROM test_jobs WHERE ` + which + ` ORDER BY n`)
	ok(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var j ports.Job
		var due int64
		ok(w.t, rows.Scan(&j.Kind, &j.SessionID, &due))
		j.After = time.UnixMicro(due).Sub(w.clock.Now())
		jobs = append(jobs, j)
	}
	ok(w.t, rows.Err())
	return jobs
}

// work does every job that is due, once, and returns what they answered; doAll
// does so for those that it is given.
func (w *world) work() error {
	w.t.Helper()
	return errors.Join(w.doAll(w.pending()), w.driver.DriveDue(context.Background()))
}

func (w *world) doAll(jobs []ports.Job) error {
	w.t.Helper()
	var faults []error
	for _, j := range jobs {
		if j.After > 0 {
			continue
		}
		err := w.do(j)
		if err == nil {
			w.exec(`DELETE FROM test_jobs WHERE n = (SELECT MIN(n) FROM test_jobs WHERE kind = ? AND session = ?)`, j.Kind, j.SessionID)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (w *world) do(j ports.Job) error {
	switch j.Kind {
	case ports.DriveOrdersJob:
		return w.driver.DriveSession(context.Background(), j.SessionID)
	case ports.ExpireSessionJob:
		return w.passes.ExpireSession(context.Background(), j.SessionID)
	case ports.SettleSessionJob:
		return w.passes.SettleSession(context.Background(), j.SessionID)
	case ports.ExpireTrialJob:
		return w.passes.ExpireTrial(context.Background(), j.SessionID)
	}
	return fmt.Errorf("no job of kind %q", j.Kind)
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	_, err := w.db.Writer().Exec(w.sql(statement), args...)
	ok(w.t, err)
}

// register opens an account and returns its id.
func (w *world) register() string {
	w.t.Helper()
	r, err := w.accounts.Register(context.Background(), accounts.Register{Profile: account.Profile{Name: "agent"}})
	ok(w.t, err)
	return r.Agent.ID
}

// hook is where events of hooked agents go.
const hook = "https://example.com/hook"

// hooked is register with a webhook.
func (w *world) hooked() string {
	w.t.Helper()
	r, err := w.accounts.Register(context.Background(), accounts.Register{Profile: account.Profile{Name: "agent", WebhookURL: hook}})
	ok(w.t, err)
	return r.Agent.ID
}

// receivedEvents lists the webhook events of an agent, oldest first: the type and the
// data but for the ids.
func (w *world) receivedEvents(agent string) string {
	w.t.Helper()
	query := `SELECT o.type || COALESCE((SELECT group_concat(' ' || key || '=' || value, '') FROM json_each(o.data)
		WHERE key NOT LIKE '%_id'), '') FROM outbox o JOIN webhook_deliveries d ON d.event_id = o.id
		WHERE o.agent_id = ? ORDER BY o.seq`
	if w.postgres() {
		query = strings.NewReplacer("group_concat(", "string_agg(", "json_each(o.data)", "json_each_text(o.data::json)").Replace(query)
	}
	return strings.Join(w.texts(query, agent), "; ")
}

// forget deletes the events that receivedEvents lists.
func (w *world) forget() {
	w.exec(`DELETE FROM outbox`)
	w.exec(`DELETE FROM webhook_deliveries`)
}

// rich registers an agent and credits it with own money beside the trial.
func (w *world) rich(dollars domain.Money) string {
	w.t.Helper()
	id := w.register()
	_, err := w.wallet.Adjust(context.Background(), id, dollars*domain.Dollar, "for the test")
	ok(w.t, err)
	return id
}

// The products, by who sells them and whether they are delivered at once.
const (
	local, localLater   = "dyn_fast_1", "dyn_global_1"
	static, staticLater = "sta_isp_1", "sta_city_1"
	remote, remoteLater = "dyn_sync", "dyn_async"
	remoteStatic        = "sta_sync"
)

// form is a create call for a product: one GB, or one IP for 30 days in Germany.
func form(product string) session.CreateRequest {
	f := session.CreateRequest{Type: "dynamic", ProductNo: product}
	if product[:3] == "sta" {
		f.Type, f.Quantity, f.Days, f.Location.Country = "static", new(1), new(30), "DE"
	}
	return f
}

// gigabytes returns the bytes of a number of GB.
func gigabytes(text string) *int64 {
	n, err := domain.ParseDecimal(text, 9)
	if err != nil {
		panic(err)
	}
	return &n
}

func (w *world) create(agent, product string) (sessions.Done, error) {
	return w.sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: form(product)})
}

// buy is create for a product that must be had.
func (w *world) buy(agent, product string) sessions.View {
	w.t.Helper()
	d, err := w.create(agent, product)
	ok(w.t, err)
	return d.View
}

func (w *world) read(agent, id string) sessions.View {
	w.t.Helper()
	v, err := w.sessions.Read(context.Background(), agent, id)
	ok(w.t, err)
	return v
}

// balance is what an agent can spend.
func (w *world) balance(agent string) domain.Money {
	w.t.Helper()
	b, err := w.wallet.Balance(context.Background(), agent)
	ok(w.t, err)
	return b.Wallet.Balance()
}
