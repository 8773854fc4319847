package console

import (
	"context"

	"agentproxy/domain/account"
)

// actions are what the console can do: each is a command of agentproxy, by the same use case.
var actions = map[string]action{
	"agent-add": {Name: "agent add", Title: "Open an account", Button: "Open the account",
		Done: "The account is open.",
		Says: "Opens an account, also where registration is closed. Its credentials are shown once.",
		Fields: []field{needed("name", "Name", "2 to 100 characters"), {Name: "referral",
			Label: "Referral code"}}, Do: addAgent},
	"agent-disable": {Name: "agent disable", Title: "Disable an agent", Button: "Disable it",
		Done: "The agent is disabled.", Danger: true,
		Says: "Shuts %s out and ends its sessions; the unused part is refunded.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			return in.agent(), nil, c.Accounts.Disable(ctx, in.Subject, in.Reason)
		}},
	"agent-enable": {Name: "agent enable", Title: "Enable an agent", Button: "Enable it",
		Done: "The agent is enabled.",
		Says: "Lets %s in again. Its sessions stay ended.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			return in.agent(), nil, c.Accounts.Enable(ctx, in.Subject)
		}},
	"agent-set-tier": {Name: "agent set-tier", Title: "Set an agent's tier", Button: "Set the tier",
		Done: "The tier is set.",
		Says: "Verifies %s with what shows who it is, or withdraws that.",
		Fields: []field{{Name: "tier", Label: "Tier", Required: true, Options: []option{{Value: "verified",
			Text: "verified"},
			{Value: "funded", Text: "funded"}, {Value: "trial",
				Text: "trial"}}}, {Name: "evidence", Label: "Evidence",
			Hint: "Needed for verified."}},
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.Accounts.SetTier(ctx, in.Subject, account.Tier(in.get("tier")), in.get("evidence"))
			return in.agent(), nil, err
		}},
	"agent-set-rate-limit": {Name: "agent set-rate-limit", Title: "Set an agent's rate limit",
		Button: "Set the limit",
		Done:   "The rate limit is set.", Says: "Gives %s a rate limit of its own.",
		Fields: []field{needed("per_minute", "Requests a minute", "0 is unlimited")}, Do: setRateLimit},
	"agent-rotate-key": {Name: "agent rotate-key", Title: "Replace an agent's key", Button: "Replace the key",
		Danger: true,
		Done:   "The key is replaced.", Says: "Replaces the first API key of %s. The old one ends at once.", Do: rotateKey},
	"referrer-add": {Name: "referrer add", Title: "Add a referring agent", Button: "Add it",
		Done:   "The referring agent is added.",
		Says:   "Adds a referring agent with a code of its own.",
		Fields: []field{needed("name", "Name", "2 to 100 characters"), needed("code", "Code", "compared exactly")},
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.Referrers.Add(ctx, in.get("name"), in.get("code"))
			return "/agents", nil, err
		}},
	"referrer-disable": {Name: "referrer disable", Title: "Refuse a referral code", Button: "Refuse it", Danger: true,
		Done: "The code is refused.", Says: "Refuses a code from now on. Accounts that came by it keep it.",
		Fields: []field{needed("code", "Code", "")},
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			return "/agents", nil, c.Referrers.Disable(ctx, in.get("code"))
		}},
	"adjust": {Name: "adjust", Title: "Correct a balance", Button: "Book the correction",
		Done: "The correction is booked.", Once: true,
		Says:   "Books a correction for %s. Its agent sees the reason.",
		Fields: []field{needed("amount", "Amount", "US dollars, such as -1.50")}, Do: adjust},
	"session-end": {Name: "session end", Title: "End a session", Button: "End the session",
		Done: "The session has ended.", Danger: true,
		Says: "Ends %s. Traffic that was not used, and the whole days that are left, are given back.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.Sessions.End(ctx, in.Subject)
			return in.session(), nil, err
		}},
	"refund": {Name: "refund", Title: "Refund a session", Button: "Refund", Done: "The refund is booked.", Once: true,
		Says:   "Gives back a part of what %s was charged until now. Its agent sees the reason.",
		Fields: []field{needed("percent", "Percent", "1 to 100, of everything that it was charged")}, Do: refund},
	"orders-adopt": {Name: "orders adopt", Title: "Adopt an order", Button: "Adopt it", Done: "The order is adopted.",
		Says:   "Decides that the seller did make the order %s. It is read there first.",
		Fields: []field{{Name: "provider_ref", Label: "The seller's id of it", Hint: "A renewal needs none."}},
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.Orders.Adopt(ctx, in.Subject, in.get("provider_ref"))
			return "/sellers", nil, err
		}},
	"orders-release": {Name: "orders release", Title: "Release an order", Button: "Release it",
		Done: "The order is released.", Danger: true,
		Says: "Decides that the seller did not make the order %s: the next source is tried, or the money given back.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.Orders.Release(ctx, in.Subject)
			return "/sellers", nil, err
		}},
	"orders-lost": {Name: "orders lost", Title: "Give up an order", Button: "Give it up",
		Done: "The order is given up.", Danger: true,
		Says: "Decides that the seller does not have the order %s: its session ends, and the unused part is refunded.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.Orders.Lost(ctx, in.Subject)
			return "/sellers", nil, err
		}},
	"orders-reconcile": {Name: "orders reconcile", Title: "Compare a seller's list", Button: "Compare",
		Done: "The lists are compared.",
		Says: "Compares what %s has with the orders, and cancels or adopts what is ours.", Do: compare},
	"jobs-retry": {Name: "jobs retry", Title: "Run a job again", Button: "Run it", Done: "The job runs again.",
		Says: "Runs job %s again at once.",
		Do:   jobOf(func(c *Console, ctx context.Context, id int64) error { return c.Jobs.Retry(ctx, id) })},
	"jobs-discard": {Name: "jobs discard", Title: "Remove a job", Button: "Remove it", Done: "The job is removed.",
		Danger: true,
		Says:   "Removes job %s for good.",
		Do:     jobOf(func(c *Console, ctx context.Context, id int64) error { return c.Jobs.Discard(ctx, id) })},
	"recharge-rescan": {Name: "recharge rescan", Title: "Read the chain again", Button: "Read it",
		Done:   "The chain was read.",
		Says:   "Reads the history of every address again and credits what was missed.",
		Fields: []field{{Name: "from", Label: "From", Type: "date", Required: true}}, Do: rescan},
	"exits-lookup": {Name: "exits lookup", Title: "Who used an exit", Button: "Look it up",
		Done: "The look-up is kept.",
		Says: "Names who used an exit at a time. That you asked is kept.",
		Fields: []field{needed("exit", "Exit's address", "as the target saw it"), {Name: "port",
			Label: "Its source port",
			Hint:  "Without it every connection of the exit is listed."}, needed("at", "When", "such as 2026-05-15T12:00:00Z"),
			{Name: "minutes", Label: "By how many minutes the clocks may differ", Value: "5", Required: true},
			{Name: "target", Label: "The target's host or address"}}, Do: lookUp},
	"exits-hold": {Name: "exits hold", Title: "Hold days of the exit log", Button: "Hold them",
		Done: "The days are held.",
		Says: "Keeps UTC days of the exit log from deletion.",
		Fields: []field{{Name: "from", Label: "First day", Type: "date", Required: true},
			{Name: "to", Label: "Last day", Type: "date", Required: true}}, Do: hold},
	"exits-release": {Name: "exits release", Title: "End a hold", Button: "End the hold",
		Done: "The hold has ended.", Danger: true,
		Says: "Ends the hold %s: its days are deleted when they are old enough.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			return "/exits", nil, c.Exits.Release(ctx, in.Subject)
		}},
}
