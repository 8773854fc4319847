package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/ledger"
	"agentproxy/app/operator"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

type agentCmd struct {
	Add          agentAddCmd     `cmd:"" help:"Open an account, also where registration is closed; prints its credentials once."`
	List         agentListCmd    `cmd:"" help:"List agents, newest first or sorted."`
	Show         agentShowCmd    `cmd:"" help:"Show one agent, its money and its keys included."`
	Disable      agentDisableCmd `cmd:"" help:"Shut an agent out and end its sessions; the unused part is refunded."`
	Enable       agentEnableCmd  `cmd:"" help:"Let a disabled agent in again."`
	RotateKey    agentKeyCmd     `cmd:"" name:"rotate-key" help:"Replace an agent's first API key; the old one ends at once."`
	Note         agentNoteCmd    `cmd:"" help:"Keep the reason as a note about an agent, which operators alone see."`
	SetTier      agentTierCmd    `cmd:"" name:"set-tier" help:"Verify an agent, or withdraw its verification."`
	SetRateLimit agentLimitCmd   `cmd:"" name:"set-rate-limit" help:"Give an agent a rate limit of its own."`
}

type agentAddCmd struct {
	noted
	Name     string `required:"" help:"Its name, 2 to 100 characters."`
	Referral string `placeholder:"CODE" help:"The code of the referring agent."`
}

// Run opens an account.
func (c agentAddCmd) Run(k *kit) error {
	return do(k, c.action("agent add", ""), func(ctx context.Context, service *accounts.Service) error {
		r, err := service.Register(ctx, accounts.Register{Profile: account.Profile{Name: c.Name}, ReferralCode: c.Referral,
			Operator: true})
		if err != nil {
			return err
		}
		return k.record("agent_id", r.Agent.ID, "name", r.Agent.Name, "referrer", r.Agent.Referrer.Name,
			"api_key", r.APIKey, "api_secret", r.APISecret, "trial", r.Wallet.Available.Trial.String())
	})
}

type agentListCmd struct {
	Page     int `default:"1" help:"Page, from 1."`
	PageSize int `default:"100" help:"Agents per page, at most 100."`

	Search         string `help:"Only those with this id, or with this text in the name or the email address."`
	Referrer       string `placeholder:"CODE" help:"Only those of the referring agent of this code or name."`
	Status         string `enum:",${account_statuses}" default:"" help:"Only those of this status."`
	Sort           string `enum:",balance,charged,recharged,live" default:"" help:"Those with the most first: balance, charged, recharged or live (sessions); else the newest first."`
	RegisteredFrom string `placeholder:"CIDR" help:"Only those that registered from this network, such as 203.0.113.0/24."`
}

// Run lists agents.
func (c agentListCmd) Run(k *kit) error {
	page, err := pageOf(c.Page, c.PageSize)
	if err != nil {
		return err
	}
	filter := ports.AgentFilter{Search: c.Search, Referrer: c.Referrer, Status: account.Status(c.Status),
		Order: ports.AgentOrder(c.Sort)}
	if c.RegisteredFrom != "" {
		if filter.RegisteredFrom, err = account.ParseNetwork(c.RegisteredFrom); err != nil {
			return err
		}
	}
	return core(k, func(ctx context.Context, money *operator.Money) error {
		list, err := money.Agents(ctx, filter, page)
		if err != nil {
			return err
		}
		t := table{columns: []string{"agent_id", "status", "referrer", "balance", "trial", "held", "charged", "refunded",
			"recharged", "live_sessions", "created_at", "registered_from", "name"}}
		for _, a := range list.Items {
			w := a.Wallet
			t.add(a.ID, a.Status, a.Referrer.Name, w.Balance().String(), w.Available.Trial.String(),
				(w.Held.Total() - a.Unbooked).String(), (w.Charged + a.Unbooked).String(), w.Refunded.String(),
				w.Recharged.String(), w.LiveSessions, a.CreatedAt.Format(time.RFC3339), addressText(a.Origin.Addr), a.Name)
		}
		return t.print(k)
	})
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
		keys, err := accounts.Keys.Views(ctx, c.AgentID)
		if err != nil {
			return err
		}
		list := keyTable(keys)
		fields := []any{"agent_id", a.ID, "name", a.Name, "status", a.Status, "disabled_for", a.DisabledFor,
			"contact_email", a.ContactEmail, "referrer", a.Referrer.Name, "rate_limit_per_minute", limitText(info),
			"balance", b.Wallet.Balance().String(), "held", b.Held.String(), "trial", b.Wallet.Available.Trial.String(),
			"tier", info.Tier, "verified_for", a.VerifiedFor, "charged", (b.Wallet.Charged + b.Unbooked).String(),
			"live_sessions", b.Wallet.LiveSessions, "registered_from", addressText(a.Origin.Addr),
			"registered_with", a.Origin.UserAgent, "billing_user_id", a.BillingUserID,
			"created_at", a.CreatedAt.Format(time.RFC3339)}
		if k.json {
			return k.record(append(fields, "keys", list.objects())...)
		}
		if err := k.record(fields...); err != nil {
			return err
		}
		fmt.Fprintln(k.out)
		return list.print(k)
	}, &accounts, &wallet)
}

// keyTable lists keys with what they may spend and have spent, without the keys themselves.
func keyTable(keys []accounts.KeyView) *table {
	t := &table{columns: []string{"key_id", "state", "spent", "held", "left", "budget_total", "budget_daily",
		"budget_per_purchase", "live_sessions", "max_sessions", "sessions", "products", "scopes", "used_at", "expires_at",
		"created_at", "hint", "name"}}
	limit := func(m *domain.Money) string {
		if m == nil {
			return ""
		}
		return m.String()
	}
	for _, k := range keys {
		l, left, most, products, scopes := k.Limits, "", "", words{}, words{}
		if k.Limited {
			left = k.Left.String()
		}
		if l.MaxSessions > 0 {
			most = strconv.Itoa(l.MaxSessions)
		}
		products = append(products, l.Products...)
		for _, s := range k.Grants() {
			scopes = append(scopes, string(s))
		}
		t.add(k.ID, k.State(), k.Spent.String(), k.Held.String(), left, limit(l.Budget.Total), limit(l.Budget.Daily),
			limit(l.Budget.PerPurchase), k.Live, most, l.Reach(), products, scopes, timeText(k.Used), timeText(k.Expires),
			timeText(k.Created), k.Hint, k.Name)
	}
	return t
}

// addressText returns an address as text, "" if there is none.
func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func limitText(info accounts.Info) string {
	if info.PerMinute == 0 {
		return "unlimited"
	}
	return strconv.Itoa(info.PerMinute)
}

type agentDisableCmd struct {
	AgentID        string `arg:"" optional:"" name:"AGENT_ID"`
	RegisteredFrom string `placeholder:"CIDR" help:"In place of AGENT_ID: every agent that registered from this network."`
	reasoned
}

// Run disables an agent, or all that registered from a network.
func (c agentDisableCmd) Run(k *kit) error {
	if (c.AgentID == "") == (c.RegisteredFrom == "") {
		return domain.InvalidField("AGENT_ID", "or --registered-from is needed, and not both")
	}
	action := c.action("agent disable", cmp.Or(c.AgentID, c.RegisteredFrom))
	return do(k, action, func(ctx context.Context, accounts *accounts.Service) error {
		if c.RegisteredFrom == "" {
			if err := accounts.Disable(ctx, c.AgentID, c.Reason); err != nil {
				return err
			}
			return k.record("agent_id", c.AgentID, "status", account.Disabled)
		}
		from, err := account.ParseNetwork(c.RegisteredFrom)
		if err != nil {
			return err
		}
		ids, err := accounts.DisableFrom(ctx, from, c.Reason)
		t := table{columns: []string{"agent_id", "status"}}
		for _, id := range ids {
			t.add(id, account.Disabled)
		}
		return errors.Join(err, t.print(k))
	})
}

type agentEnableCmd struct {
	noted
	AgentID string `arg:"" name:"AGENT_ID"`
}

// Run enables an agent.
func (c agentEnableCmd) Run(k *kit) error {
	return do(k, c.action("agent enable", c.AgentID), func(ctx context.Context, accounts *accounts.Service) error {
		if err := accounts.Enable(ctx, c.AgentID); err != nil {
			return err
		}
		return k.record("agent_id", c.AgentID, "status", account.Active)
	})
}

type agentLimitCmd struct {
	noted
	AgentID   string `arg:"" name:"AGENT_ID"`
	PerMinute int    `required:"" help:"Requests a minute; 0 is unlimited."`
}

// Run sets an agent's own rate limit.
func (c agentLimitCmd) Run(k *kit) error {
	action := c.action("agent set-rate-limit", c.AgentID)
	action.Details = fmt.Sprintf("per_minute=%d", c.PerMinute)
	return do(k, action, func(ctx context.Context, accounts *accounts.Service) error {
		if err := accounts.SetRateLimit(ctx, c.AgentID, c.PerMinute); err != nil {
			return err
		}
		return k.record("agent_id", c.AgentID, "rate_limit_per_minute", c.PerMinute)
	})
}

type agentNoteCmd struct {
	reasoned
	AgentID string `arg:"" name:"AGENT_ID"`
}

// Run keeps the reason as a note: an action that changes nothing.
func (c agentNoteCmd) Run(k *kit) error {
	return do(k, c.action("agent note", c.AgentID), func(ctx context.Context, accounts *accounts.Service) error {
		if _, err := accounts.Info(ctx, c.AgentID); err != nil {
			return err
		}
		return k.record("agent_id", c.AgentID, "note", c.Reason)
	})
}

type agentTierCmd struct {
	noted
	AgentID  string `arg:"" name:"AGENT_ID"`
	Tier     string `arg:"" name:"TIER" help:"verified, or what the agent is without: funded once enough own money was credited, else trial."`
	Evidence string `help:"What shows who the agent is; required for verified, kept with the account."`
}

// Run verifies an agent or withdraws that.
func (c agentTierCmd) Run(k *kit) error {
	action := c.action("agent set-tier", c.AgentID)
	action.Details = fmt.Sprintf("tier=%s evidence=%q", c.Tier, c.Evidence)
	return do(k, action, func(ctx context.Context, accounts *accounts.Service) error {
		tier, err := accounts.SetTier(ctx, c.AgentID, account.Tier(c.Tier), c.Evidence)
		if err != nil {
			return err
		}
		return k.record("agent_id", c.AgentID, "tier", tier)
	})
}

type agentKeyCmd struct {
	noted
	AgentID string `arg:"" name:"AGENT_ID"`
}

// Run replaces the first key of an agent and prints the new one.
func (c agentKeyCmd) Run(k *kit) error {
	return do(k, c.action("agent rotate-key", c.AgentID), func(ctx context.Context, accounts *accounts.Service) error {
		first, text, err := accounts.Keys.Replace(ctx, c.AgentID)
		if err != nil {
			return err
		}
		return k.record("agent_id", c.AgentID, "key_id", first.ID, "api_key", text)
	})
}
