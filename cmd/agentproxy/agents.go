package main

import (
	"context"
	"strconv"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

type agentCmd struct {
	List         agentListCmd    `cmd:"" help:"List agents, newest first."`
	Show         agentShowCmd    `cmd:"" help:"Show one agent, its money included."`
	Disable      agentDisableCmd `cmd:"" help:"Shut an agent out and end its sessions; the unused part is refunded."`
	Enable       agentEnableCmd  `cmd:"" help:"Let a disabled agent in again."`
	SetTier      agentTierCmd    `cmd:"" name:"set-tier" help:"Verify an agent, or withdraw its verification."`
	SetRateLimit agentLimitCmd   `cmd:"" name:"set-rate-limit" help:"Give an agent a rate limit of its own."`
}

type agentListCmd struct {
	Page     int `default:"1" help:"Page, from 1."`
	PageSize int `default:"100" help:"Agents a page, at most 100."`
}

// Run lists agents.
func (c agentListCmd) Run(k *kit) error {
	if c.Page < 1 || c.PageSize < 1 {
		return domain.InvalidField("page", "and page-size must be 1 or more")
	}
	var accounts *accounts.Service
	return k.core(func(ctx context.Context) error {
		list, err := accounts.List(ctx, domain.Page{Number: c.Page, Size: min(c.PageSize, domain.MaxPageSize)})
		if err != nil {
			return err
		}
		t := table{columns: []string{"agent_id", "status", "referrer", "created_at", "name"}}
		for _, a := range list.Items {
			t.add(a.ID, a.Status, a.Referrer.Name, a.CreatedAt.Format(time.RFC3339), a.Name)
		}
		return t.print(k)
	}, &accounts)
}

type agentShowCmd struct {
	AgentID string `arg:"" name:"AGENT_ID"`
}

// Run shows one agent.
func (c agentShowCmd) Run(k *kit) error {
	var accounts *accounts.Service
	var wallet *ledger.Wallet
	return k.core(func(ctx context.Context) error {
		info, err := accounts.Info(ctx, c.AgentID)
		if err != nil {
			return err
		}
		b, err := wallet.Balance(ctx, c.AgentID)
		if err != nil {
			return err
		}
		a := info.Agent
		return k.record("agent_id", a.ID, "name", a.Name, "status", a.Status, "disabled_for", a.DisabledFor,
			"contact_email", a.ContactEmail, "referrer", a.Referrer.Name, "rate_limit_per_minute", limitText(info),
			"balance", b.Wallet.Balance().String(), "held", b.Held.String(), "trial", b.Wallet.Available.Trial.String(),
			"tier", info.Tier, "verified_for", a.VerifiedFor, "charged", b.Wallet.Charged.String(), "live_sessions", b.Wallet.LiveSessions,
			"billing_user_id", a.BillingUserID, "created_at", a.CreatedAt.Format(time.RFC3339))
	}, &accounts, &wallet)
}

func limitText(info accounts.Info) string {
	if info.PerMinute == 0 {
		return "unlimited"
	}
	return strconv.Itoa(info.PerMinute)
}

type agentDisableCmd struct {
	AgentID string `arg:"" name:"AGENT_ID"`
	Reason  string `required:"" help:"Why; kept with the account."`
}

// Run disables an agent.
func (c agentDisableCmd) Run(k *kit) error {
	var accounts *accounts.Service
	return k.core(func(ctx context.Context) error {
		if err := accounts.Disable(ctx, c.AgentID, c.Reason); err != nil {
			return err
		}
		return k.record("agent_id", c.AgentID, "status", account.Disabled)
	}, &accounts)
}

type agentEnableCmd struct {
	AgentID string `arg:"" name:"AGENT_ID"`
}

// Run enables an agent.
func (c agentEnableCmd) Run(k *kit) error {
	var accounts *accounts.Service
	return k.core(func(ctx context.Context) error {
		if err := accounts.Enable(ctx, c.AgentID); err != nil {
			return err
		}
		return k.record("agent_id", c.AgentID, "status", account.Active)
	}, &accounts)
}

type agentLimitCmd struct {
	AgentID   string `arg:"" name:"AGENT_ID"`
	PerMinute int    `required:"" help:"Requests a minute; 0 is unlimited."`
}

// Run sets an agent's own rate limit.
func (c agentLimitCmd) Run(k *kit) error {
	var accounts *accounts.Service
	return k.core(func(ctx context.Context) error {
		if err := accounts.SetRateLimit(ctx, c.AgentID, c.PerMinute); err != nil {
			return err
		}
		return k.record("agent_id", c.AgentID, "rate_limit_per_minute", c.PerMinute)
	}, &accounts)
}

type agentTierCmd struct {
	AgentID  string `arg:"" name:"AGENT_ID"`
	Tier     string `arg:"" name:"TIER" help:"verified, or what the agent is without: funded once own money was credited, else trial."`
	Evidence string `help:"What shows who the agent is; required for verified, kept with the account."`
}

// Run verifies an agent or withdraws that.
func (c agentTierCmd) Run(k *kit) error {
	var accounts *accounts.Service
	return k.core(func(ctx context.Context) error {
		tier, err := accounts.SetTier(ctx, c.AgentID, account.Tier(c.Tier), c.Evidence)
		if err != nil {
			return err
		}
		return k.record("agent_id", c.AgentID, "tier", tier)
	}, &accounts)
}
