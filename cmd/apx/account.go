package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

type registerCommand struct {
	Name     string `default:"apx" help:"The name of the account."`
	Referral string `help:"The code of a referring agent."`
}

// Run opens an account. The key goes into the profile and is not printed.
func (r registerCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	if p, err := loadProfile(); err != nil {
		return err
	} else if p.APIKey != "" && sameService(p.URL, service.url) {
		return fmt.Errorf("%w: the profile has the account %s of this service; remove the profile for another one",
			errMisuse, p.Agent)
	}
	body := map[string]any{"name": r.Name}
	if r.Referral != "" {
		body["referral_code"] = r.Referral
	}
	var account struct {
		AgentID string `json:"agent_id"`
		Key     string `json:"api_key"`
		Secret  string `json:"api_secret"`
		Trial   struct {
			Balance json.Number `json:"balance"`
		} `json:"trial"`
	}
	data, err := service.read(ctx, "POST", "/account/register", "", body, &account)
	if err != nil {
		return err
	}
	path, err := profile{URL: service.url, APIKey: account.Key, Secret: account.Secret, Agent: account.AgentID}.save()
	if err != nil {
		return fmt.Errorf("keep the account %s: %w", account.AgentID, err)
	}
	return c.show(s, data, func(w io.Writer) {
		fmt.Fprintf(w, "%s with %s USD of trial credit; its key is in %s\n", account.AgentID, account.Trial.Balance, path)
	})
}

type accountCommand struct{}

// Run prints the account.
func (accountCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	var a struct {
		AgentID string `json:"agent_id"`
		Name    string `json:"name"`
		Status  string `json:"status"`
		Tier    string `json:"tier"`
	}
	data, err := service.read(ctx, "GET", "/account/info", "", nil, &a)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) {
		table(w, []string{"agent", "name", "status", "tier"}, [][]string{{a.AgentID, a.Name, a.Status, a.Tier}})
	})
}

type balanceCommand struct{}

// Run prints the balance.
func (balanceCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	var b struct {
		Balance json.Number `json:"balance"`
		Held    json.Number `json:"held"`
	}
	data, err := service.read(ctx, "GET", "/billing/balance", "", nil, &b)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) {
		fmt.Fprintf(w, "%s USD, and %s USD held by sessions\n", b.Balance, b.Held)
	})
}
