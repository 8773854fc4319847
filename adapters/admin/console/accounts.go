package console

import (
	"context"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// accountActions are those about agents and who sent them.
var accountActions = map[string]action{
	"agent-add": {Page: "/agents",
		Name: "agent add", Title: "Open an account", Button: "Open the account",
		Done:        "The account is open.",
		Description: "Opens an account, also where registration is closed. Its credentials are shown once.",
		Fields: []field{needed("name", "Name", "2 to 100 characters"), {Name: "referral",
			Label: "Referral code"}}, Do: addAgent},
	"agent-disable": {Name: "agent disable", Title: "Disable an agent", Button: "Disable it",
		Done: "The agent is disabled.", Danger: true,
		Description: "Shuts %s out and ends its sessions; the unused part is refunded.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			return in.agent(), nil, c.use.Accounts.Disable(ctx, in.Subject, in.Reason)
		}},
	"agent-disable-network": {Page: "/agents",
		Name: "agent disable", Title: "Disable the agents of a network",
		Button: "Disable them", Done: "They are disabled.", Danger: true,
		Description: "Shuts out every agent that registered from a network and ends their sessions.",
		Fields:      []field{needed("network", "Network", "CIDR, such as 203.0.113.0/24, or an address")},
		About:       []string{"network"}, Do: disableFrom},
	"agent-note": {Name: "agent note", Title: "Add a note about an agent", Button: "Keep it", Done: "The note is kept.",
		Description: "Keeps the reason as a note about %s, which operators alone see.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.use.Accounts.Info(ctx, in.Subject)
			return in.agent(), nil, err
		}},
	"agent-enable": {Name: "agent enable", Title: "Enable an agent", Button: "Enable it",
		Done:        "The agent is enabled.",
		Description: "Lets %s in again. Its sessions stay ended.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			return in.agent(), nil, c.use.Accounts.Enable(ctx, in.Subject)
		}},
	"agent-set-tier": {Name: "agent set-tier", Title: "Set an agent's tier", Button: "Set the tier",
		Done:        "The tier is set.",
		Description: "Verifies %s with what shows who it is, or withdraws that.",
		Fields: []field{{Name: "tier", Label: "Tier", Required: true, Options: []option{{Value: "verified",
			Text: "verified"},
			{Value: "funded", Text: "funded"}, {Value: "trial",
				Text: "trial"}}}, {Name: "evidence", Label: "Evidence",
			Hint: "Needed for verified."}},
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.use.Accounts.SetTier(ctx, in.Subject, account.Tier(in.get("tier")), in.get("evidence"))
			return in.agent(), nil, err
		}},
	"agent-set-rate-limit": {Name: "agent set-rate-limit", Title: "Set an agent's rate limit",
		Button: "Set the limit",
		Done:   "The rate limit is set.", Description: "Gives %s a rate limit of its own.",
		Fields: []field{needed("per_minute", "Requests a minute", "0 is unlimited")}, Do: setRateLimit},
	"agent-rotate-key": {Name: "agent rotate-key", Title: "Replace an agent's key", Button: "Replace the key",
		Danger:      true,
		Done:        "The key is replaced.",
		Description: "Replaces the first API key of %s. The old one ends at once.", Do: rotateKey},
	"referrer-add": {Page: "/agents/referrers",
		Name: "referrer add", Title: "Add a referring agent", Button: "Add it",
		Done:        "The referring agent is added.",
		Description: "Adds a referring agent with a code of its own.",
		Fields:      []field{needed("name", "Name", "2 to 100 characters"), needed("code", "Code", "compared exactly")},
		About:       []string{"code"},
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			_, err := c.use.Referrers.Add(ctx, in.get("name"), in.get("code"))
			return "/agents/referrers", nil, err
		}},
	"referrer-disable": {Page: "/agents/referrers",
		Name: "referrer disable", Title: "Refuse a referral code", Button: "Refuse it", Danger: true,
		Done: "The code is refused.", Description: "Refuses the code %s from now on. Accounts that came by it keep it.",
		Do: func(ctx context.Context, c *Console, in input) (string, []section, error) {
			return "/agents/referrers", nil, c.use.Referrers.Disable(ctx, in.Subject)
		}},
	"adjust": {Name: "adjust", Title: "Correct a balance", Button: "Book the correction",
		Done: "The correction is booked.", Once: true,
		Description: "Books a correction for %s. Its agent sees the reason.",
		Fields:      []field{needed("amount", "Amount", "US dollars, such as -1.50")}, Do: adjust},
}

func addAgent(ctx context.Context, c *Console, in input) (string, []section, error) {
	r, err := c.use.Accounts.Register(ctx, accounts.Register{Profile: account.Profile{Name: in.get("name")},
		ReferralCode: in.get("referral"), Operator: true})
	if err != nil {
		return "", nil, err
	}
	return "", secrets("The new account", figure{Name: "Agent", Value: link(r.Agent.ID, "/agents/")},
		figure{Name: "API key", ID: "api-key", Value: text(r.APIKey)},
		figure{Name: "API secret", ID: "api-secret", Value: text(r.APISecret)}), nil
}

func rotateKey(ctx context.Context, c *Console, in input) (string, []section, error) {
	_, key, err := c.use.Accounts.Keys.Replace(ctx, in.Subject)
	if err != nil {
		return "", nil, err
	}
	return "", secrets("The new key", figure{Name: "Agent", Value: link(in.Subject, "/agents/")},
		figure{Name: "API key", ID: "api-key", Value: text(key)}), nil
}

func setRateLimit(ctx context.Context, c *Console, in input) (string, []section, error) {
	n, err := in.number("per_minute")
	if err != nil {
		return "", nil, err
	}
	return in.agent(), nil, c.use.Accounts.SetRateLimit(ctx, in.Subject, n)
}

func adjust(ctx context.Context, c *Console, in input) (string, []section, error) {
	amount, err := domain.ParseMoney(in.get("amount"))
	if err != nil {
		return "", nil, domain.InvalidField("amount", "must be US dollars with at most 6 decimals, such as -1.50")
	}
	_, err = c.use.Wallet.AdjustOnce(ctx, in.Subject, amount, in.Reason, in.Ref)
	return in.agent(), nil, err
}

// disableFrom disables the agents of a network. Those that are disabled are shown also if another one
// could not be.
func disableFrom(ctx context.Context, c *Console, in input) (string, []section, error) {
	from, err := account.ParseNetwork(in.get("network"))
	if err != nil {
		return "", nil, err
	}
	ids, err := c.use.Accounts.DisableFrom(ctx, from, in.Reason)
	t := &table{Columns: []string{"Agent"}, Empty: "No active agent registered from there."}
	for _, id := range ids {
		t.Rows = append(t.Rows, row{Cells: []cell{link(id, "/agents/")}})
	}
	return "", []section{{Title: "Disabled", ID: "disabled", Table: t}}, err
}
