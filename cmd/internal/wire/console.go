package wire

import (
	"cmp"
	"context"
	"log/slog"
	"os/user"

	"go.uber.org/fx"

	"agentproxy/adapters/admin/console"
	"agentproxy/adapters/queue"
	"agentproxy/app/accounts"
	"agentproxy/app/catalog"
	"agentproxy/app/exitlog"
	"agentproxy/app/ledger"
	"agentproxy/app/operator"
	"agentproxy/app/payments"
	policyapp "agentproxy/app/policy"
	"agentproxy/app/procurement"
	"agentproxy/app/reconcile"
	"agentproxy/ports"
)

// consoleIn holds the use cases of the operator's console.
type consoleIn struct {
	fx.In

	Sessions  *operator.Sessions
	Money     *operator.Money
	Trail     *operator.Trail
	Accounts  *accounts.Service
	Referrers *accounts.Referrers
	Wallet    *ledger.Wallet
	Orders    *procurement.Desk
	Exits     *exitlog.Service
	Recharges *payments.Orders
	Payments  *payments.Watcher
	Proof     ports.Audit
	Owed      *reconcile.Watch
	Reconcile *reconcile.Service
	Catalog   *catalog.Catalog
	Policy    *policyapp.Published
	Jobs      *Jobs
	IDs       ports.IDs
	Clock     ports.Clock
	Log       *slog.Logger
}

func newConsole(in consoleIn) *console.Console {
	return console.New(console.Deps{Sessions: in.Sessions, Money: in.Money, Trail: in.Trail, Accounts: in.Accounts,
		Referrers: in.Referrers, Wallet: in.Wallet, Orders: in.Orders, Exits: in.Exits, Recharges: in.Recharges,
		Payments: in.Payments, Proof: in.Proof, Owed: in.Owed, Reconcile: in.Reconcile, Catalog: in.Catalog,
		Policy: in.Policy.Now, Jobs: consoleJobs{in.Jobs}, IDs: in.IDs, Clock: in.Clock, User: systemUser(), Log: in.Log})
}

// systemUser returns the user that runs the service, who acts unless a form names another one.
func systemUser() string {
	u, err := user.Current()
	if err != nil {
		return "operator"
	}
	return cmp.Or(u.Username, "operator")
}

// consoleJobs shows the console what Jobs has.
type consoleJobs struct{ jobs *Jobs }

// Parked lists jobs that failed every time.
func (j consoleJobs) Parked(ctx context.Context, limit int) ([]console.Job, error) {
	found, err := j.jobs.List(ctx, queue.Filter{State: "discarded", Limit: limit})
	list := make([]console.Job, len(found))
	for i, x := range found {
		list[i] = console.Job{ID: x.ID, Kind: x.Kind, State: x.State, Subject: x.Subject, Error: x.Error,
			Attempt:     x.Attempt,
			MaxAttempts: x.MaxAttempts, ScheduledAt: x.ScheduledAt}
	}
	return list, err
}

// Retry runs a job again.
func (j consoleJobs) Retry(ctx context.Context, id int64) error {
	_, err := j.jobs.Retry(ctx, id)
	return err
}

// Discard removes a job.
func (j consoleJobs) Discard(ctx context.Context, id int64) error {
	_, err := j.jobs.Discard(ctx, id)
	return err
}
