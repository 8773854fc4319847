package main

import (
	"context"

	"agentproxy/app/accounts"
)

type referrerCmd struct {
	Add     referrerAddCmd     `cmd:"" help:"Add a referring agent with a code."`
	List    referrerListCmd    `cmd:"" help:"List referring agents."`
	Disable referrerDisableCmd `cmd:"" help:"Refuse a code from now on."`
}

type referrerAddCmd struct {
	noted
	Name string `required:"" help:"Its name, 2 to 100 characters."`
	Code string `required:"" help:"The referral code, compared exactly, at most 64 characters."`
}

// Run adds a referring agent.
func (c referrerAddCmd) Run(k *kit) error {
	return do(k, c.action("referrer add", c.Code), func(ctx context.Context, referrers *accounts.Referrers) error {
		r, err := referrers.Add(ctx, c.Name, c.Code)
		if err != nil {
			return err
		}
		return k.record("agent_id", r.ID, "name", r.Name, "code", r.Code)
	})
}

type referrerListCmd struct{}

// Run lists referring agents.
func (referrerListCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, referrers *accounts.Referrers) error {
		list, err := referrers.List(ctx)
		if err != nil {
			return err
		}
		t := table{columns: []string{"agent_id", "name", "code", "default", "disabled"}}
		for _, r := range list {
			t.add(r.ID, r.Name, r.Code, r.Default, r.Disabled)
		}
		return t.print(k)
	})
}

type referrerDisableCmd struct {
	noted
	Code string `required:"" help:"The code to refuse."`
}

// Run disables a code.
func (c referrerDisableCmd) Run(k *kit) error {
	return do(k, c.action("referrer disable", c.Code), func(ctx context.Context, referrers *accounts.Referrers) error {
		if err := referrers.Disable(ctx, c.Code); err != nil {
			return err
		}
		return k.record("code", c.Code, "disabled", true)
	})
}
