package main

import (
	"context"
	"fmt"
	"io"

	"agentproxy/adapters/apiclient"
)

type registerCommand struct {
	Name     string `default:"apx" help:"The name of the account."`
	Referral string `help:"The code of a referring agent."`
}

// Run opens an account. The key goes into the profile and is not printed.
func (r registerCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	if p, err := loadProfile(); err != nil {
		return err
	} else if p.APIKey != "" && sameService(p.URL, service.url) {
		return fmt.Errorf("%w: the profile has the account %s of this service; remove the profile for another one",
			errMisuse, p.Agent)
	}
	var kept apiclient.Answer
	account, err := service.Register(ctx, apiclient.Register{Name: r.Name, ReferralCode: r.Referral},
		apiclient.Keep(&kept))
	if err != nil {
		return err
	}
	path, err := profile{URL: service.url, APIKey: account.APIKey, Secret: account.APISecret,
		Agent: account.AgentID}.save()
	if err != nil {
		return fmt.Errorf("keep the account %s: %w", account.AgentID, err)
	}
	return c.show(s, kept, nil, func(w io.Writer) {
		fmt.Fprintf(w, "%s with %s USD of trial credit; its key is in %s\n", account.AgentID, account.Trial.Balance, path)
	})
}

type accountCommand struct{}

// Run prints the account.
func (accountCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	var kept apiclient.Answer
	a, err := service.GetAccount(ctx, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		table(w, []string{"agent", "name", "status", "tier"},
			[][]string{{a.AgentID, a.Name, string(a.Status), string(a.Tier)}})
	})
}

type balanceCommand struct{}

// Run prints the balance.
func (balanceCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	var kept apiclient.Answer
	b, err := service.GetBalance(ctx, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		fmt.Fprintf(w, "%s USD, and %s USD held by sessions\n", b.Balance, b.Held)
		if k := b.Key; k != nil {
			left := "no limit"
			if k.Left != nil {
				left = k.Left.String() + " USD left"
			}
			fmt.Fprintf(w, "this key: %s, %s USD spent, %s USD held\n", left, k.Spent, k.Held)
		}
	})
}
