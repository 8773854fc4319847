package console

import (
	"context"
	"fmt"
	"time"

	"agentproxy/domain"
)

// serviceActions are those about payments, the ledger, the database and jobs.
var serviceActions = map[string]action{
	"recharge-rescan": {Page: "/recharges",
		Name: "recharge rescan", Title: "Read the chain again", Button: "Read it",
		Done:        "The chain was read.",
		Description: "Reads the history of every address again and credits what was missed.",
		Fields:      []field{{Name: "from", Label: "From", Type: "date", Required: true}}, Do: rescan},
	"recharge-audit": {Page: "/recharges",
		Name: "recharge audit", Title: "Compare the addresses with the chain", Button: "Compare",
		Done: "The addresses are compared.", Reads: true,
		Description: "Reads the balance of every address from the chain and lists those that differ from the ledger.",
		Do:          compareAddresses},
	"devchain-send": {Page: "/recharges",
		Name: "devchain send", Title: "Send a development transfer", Button: "Send it",
		Done:        "The transfer is in the next block.",
		Description: "Sends development USDT to an address, as an agent's payment would arrive.",
		Fields: []field{needed("to", "To", "the address of a recharge order"),
			needed("amount", "Amount", "USDT, such as 12.50")},
		About: []string{"to"}, Do: sendDevelopment},
	"verify": {Name: "verify", Title: "Prove the ledger", Button: "Prove it", Done: "The ledger was read.", Reads: true,
		Description: "Reads every entry and lists the rows that break a rule. A large ledger takes minutes.", Do: verify},
	"backup": {Name: "backup", Title: "Copy the database", Button: "Copy it", Done: "The database is copied.",
		Description: "Writes a checked copy beside the database while the service runs. The root secret is not in it: " +
			"it stays where it is.",
		Fields: []field{needed("file", "Name of the new file", "without a folder, such as monday.db")}, Do: backup},
	"secret-rotate": {Name: "secret rotate", Title: "Seal again under the current root secret", Button: "Seal again",
		Done: "Everything is sealed under the current root secret.",
		Description: "Seals everything that is encrypted in the database under the root secret that the service runs with, " +
			"so that previous ones are not needed any more.", Do: reseal},
	"jobs-retry": {Page: "/jobs",
		Name: "jobs retry", Title: "Run a job again", Button: "Run it", Done: "The job runs again.",
		Description: "Runs job %s again at once.",
		Do:          jobOf(func(c *Console, ctx context.Context, id int64) error { return c.use.Jobs.Retry(ctx, id) })},
	"jobs-discard": {Page: "/jobs",
		Name: "jobs discard", Title: "Remove a job", Button: "Remove it", Done: "The job is removed.",
		Danger:      true,
		Description: "Removes job %s for good.",
		Do:          jobOf(func(c *Console, ctx context.Context, id int64) error { return c.use.Jobs.Discard(ctx, id) })},
}

func rescan(ctx context.Context, c *Console, in input) (string, []section, error) {
	from, err := in.day("from")
	if err != nil {
		return "", nil, err
	}
	addresses, credited, err := c.use.Payments.Rescan(ctx, from)
	return "", []section{{Title: "The chain", Facts: []figure{{Name: "Addresses", Value: number(addresses)},
		{Name: "Transfers credited", ID: "credited", Value: number(credited)}}}}, err
}

func compareAddresses(ctx context.Context, c *Console, _ input) (string, []section, error) {
	checked, drifts, err := c.use.Payments.AuditAll(ctx)
	t := &table{Columns: []string{"Agent", "Address", "On the chain", "Known", "Difference", "Fault"},
		Empty: "None differs."}
	for _, d := range drifts {
		t.Rows = append(t.Rows, row{Cells: []cell{link(d.AgentID, "/agents/"), text(d.Address), usd(d.Chain), usd(d.Known),
			usd(d.Chain - d.Known), text(d.Fault)}})
	}
	return "", []section{{Title: "Addresses that differ", ID: "differing", Table: t,
		Note: fmt.Sprintf("%d addresses were compared.", checked)}}, err
}

var errNoDevchain = &domain.Error{Kind: domain.Conflict, Code: "NO_DEVCHAIN",
	Message: "payments do not come from the development chain: there is nothing to send"}

func sendDevelopment(ctx context.Context, c *Console, in input) (string, []section, error) {
	amount, err := domain.ParseMoney(in.get("amount"))
	switch {
	case c.use.Host.Send == nil:
		return "", nil, errNoDevchain
	case err != nil || amount <= 0:
		return "", nil, domain.InvalidField("amount", "must be USDT above 0 with at most 6 decimals")
	}
	_, err = c.use.Host.Send(ctx, in.get("to"), amount)
	return "/recharges", nil, err
}

func verify(ctx context.Context, c *Console, _ input) (string, []section, error) {
	faults, entries, sealed, err := c.use.Proof.VerifyOpen(ctx)
	note := ""
	if !sealed.IsZero() {
		note = "Months before " + sealed.Format(time.DateOnly) + " are sealed: agentproxy verify --all reads them."
	}
	t := &table{Columns: []string{"Rule", "Where", "What"}, Empty: "No row breaks a rule."}
	for _, f := range faults {
		t.Rows = append(t.Rows, row{Cells: []cell{text(f.Rule), text(f.Where), text(f.Detail)}})
	}
	return "", []section{{Figures: []figure{{Name: "Entries", ID: "entries", Value: number(entries)},
		{Name: "Faults", ID: "faults", Value: alarm(len(faults))}}},
		{Title: "Rows that break a rule", Note: note, Table: t}}, err
}

func backup(ctx context.Context, c *Console, in input) (string, []section, error) {
	began := c.use.Clock.Now()
	path, err := c.use.Host.Backup(ctx, in.get("file"))
	if err != nil {
		return "", nil, err
	}
	return "", []section{{Title: "The copy", Note: "Keep it on another machine, and AGENTPROXY_SECRET or the .secret " +
		"file in another safe place: without the secret the copy is of no use.", Facts: []figure{
		{Name: "File", ID: "backup-file", Value: text(path)},
		{Name: "Took", Value: text(c.use.Clock.Now().Sub(began).Round(time.Millisecond).String())}}}}, nil
}

func reseal(ctx context.Context, c *Console, _ input) (string, []section, error) {
	n, err := c.use.Access.Reseal(ctx)
	return "", []section{{Title: "Sealed", Facts: []figure{{Name: "Deliveries", ID: "resealed", Value: number(n)}}}}, err
}

func compare(ctx context.Context, c *Console, in input) (string, []section, error) {
	reports, err := c.use.Reconcile.Run(ctx, in.Subject)
	t := &table{Columns: []string{"Seller", "Listed", "As they should be", "Orphans", "State"},
		Empty: "No seller has a list."}
	d := &table{Columns: []string{"Seller", "What", "Outcome", "Seller's id", "Order", "Session", "Why it remains"},
		Empty: "Nothing differs."}
	for _, r := range reports {
		state := cell{Text: "read", Tag: "good"}
		if r.Err != nil {
			state = cell{Text: "its list could not be read", Tag: "bad"}
		}
		t.Rows = append(t.Rows, row{Cells: []cell{text(r.Provider), number(r.Listed), number(r.Kept),
			number(r.Orphans()), state}})
		for _, f := range r.Findings {
			d.Rows = append(d.Rows, row{Cells: []cell{text(r.Provider), text(string(f.Disposition)), text(string(f.Outcome)),
				text(f.Ref), text(f.OrderID), link(f.SessionID, "/sessions/"), text(f.Reason)}})
		}
	}
	return "", []section{{Title: "What sellers list", Table: t}, {Title: "What differs", Table: d}}, err
}
