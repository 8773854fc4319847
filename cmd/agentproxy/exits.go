package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"agentproxy/app/exitlogs"
	"agentproxy/app/operator"
	"agentproxy/domain/exitlog"
)

type exitsCmd struct {
	Lookup  exitsLookupCmd  `cmd:"" help:"Name who used an exit, or reached a target, at a time; the look-up is kept. Exits with 1 if there is none."`
	Lookups exitsLookupsCmd `cmd:"" help:"List the look-ups, the newest first."`
	Hold    exitsHoldCmd    `cmd:"" help:"Keep UTC days of the log from deletion."`
	Holds   exitsHoldsCmd   `cmd:"" help:"List what is kept from deletion."`
	Quality exitsQualityCmd `cmd:"" help:"Count the exits that agents use by source and country as sold: measured, in another place, on a list."`
	Release exitsReleaseCmd `cmd:"" help:"End a hold: its days are deleted when they are old enough."`
}

type exitsLookupCmd struct {
	ExitIP   netip.Addr    `name:"exit-ip" help:"The exit's address, as the target logged it."`
	ExitPort uint16        `help:"Its source port; without it every connection of the exit is listed."`
	At       time.Time     `required:"" help:"When, as RFC 3339 with a zone: 2026-05-15T12:00:00Z."`
	Within   time.Duration `default:"5m" help:"By how much the clocks may differ, at most 24h."`
	Target   string        `help:"The target's host or address."`
	Client   netip.Addr    `help:"The client's address."`
	Agent    string        `help:"The agent's id."`
	Seller   string        `help:"The seller, as it is configured; its connections alone."`
	Token    string        `help:"What names the exit to the seller: the session token, or its proxy's address."`
	reasoned
}

// query returns what is asked for.
func (c exitsLookupCmd) query() exitlog.Query {
	return exitlog.Query{Exit: c.ExitIP, Port: c.ExitPort, At: c.At.UTC(), Within: c.Within, Target: c.Target,
		Client: c.Client, Agent: c.Agent, Seller: c.Seller, Token: c.Token}
}

// Validate refuses a look-up that could only list every connection.
func (c exitsLookupCmd) Validate() error {
	switch {
	case !c.query().Asks():
		return errors.New("one of --exit-ip, --target, --client, --agent, --seller and --token is needed")
	case c.ExitPort != 0 && !c.ExitIP.IsValid():
		return errors.New("--exit-port is the port of an --exit-ip")
	}
	return nil
}

// Run names who used an exit.
func (c exitsLookupCmd) Run(k *kit) error {
	q := c.query()
	about := slices.DeleteFunc([]string{addrText(q.Exit), addrText(q.Client), q.Agent, q.Seller, q.Token, q.Target},
		func(s string) bool { return s == "" })
	action := c.action("exits lookup", strings.Join(about, " to "))
	action.Details = fmt.Sprintf("exit=%s port=%d at=%s within=%s target=%s client=%s agent=%s seller=%s token=%s",
		addrText(q.Exit), q.Port, q.At.Format(time.RFC3339), q.Within, q.Target, addrText(q.Client), q.Agent, q.Seller,
		q.Token)
	return do(k, action, func(ctx context.Context, service *exitlogs.Service) error {
		found, err := service.Lookup(ctx, exitlogs.LookupInput{Operator: c.who(), Reason: c.Reason, Query: q})
		if err != nil {
			return err
		}
		t := table{columns: []string{"agent_id", "session_id", "worker", "client", "target_host", "target", "exit", "seller",
			"token", "opened_at", "closed_at", "seen_at", "bytes", "end"}}
		for _, f := range found {
			t.add(f.Agent, f.Session, f.Worker, endpointText(f.Client), f.Host, endpointText(f.Target), endpointText(f.Exit),
				f.Seller, f.Token, timeText(f.Opened), timeText(f.Closed), timeText(f.Seen), f.Bytes, string(f.End))
		}
		return t.print(k)
	})
}

// addrText writes an address, and nothing of one that is not known.
func addrText(a netip.Addr) string { return endpointText(netip.AddrPortFrom(a, 0)) }

// endpointText writes what is known of an address and its port.
func endpointText(a netip.AddrPort) string {
	switch {
	case !a.Addr().IsValid() && a.Port() == 0:
		return ""
	case !a.Addr().IsValid():
		return fmt.Sprintf(":%d", a.Port())
	case a.Port() == 0:
		return a.Addr().String()
	}
	return a.String()
}

type exitsLookupsCmd struct {
	Limit int `default:"100" help:"How many, the newest first."`
}

// Run lists look-ups.
func (c exitsLookupsCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, service *exitlogs.Service) error {
		list, err := service.Lookups(ctx, max(c.Limit, 1))
		if err != nil {
			return err
		}
		t := table{columns: []string{"id", "at", "by", "reason", "exit_ip", "exit_port", "used_at", "within",
			"target", "client", "agent", "seller", "token", "found"}}
		for _, l := range list {
			q := l.Query
			t.add(l.ID, timeText(l.At), l.Operator, l.Reason, addrText(q.Exit), q.Port, timeText(q.At), q.Within.String(),
				q.Target, addrText(q.Client), q.Agent, q.Seller, q.Token, l.Found)
		}
		return t.print(k)
	})
}

type exitsQualityCmd struct{}

// Run counts exits. Nothing is measured without exit_facts, and then there is no line.
func (exitsQualityCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, sessions *operator.Sessions) error {
		list, err := sessions.Exits(ctx)
		if err != nil {
			return err
		}
		t := table{columns: []string{"source", "country", "exits", "measured", "differing", "listed", "replaced",
			"ended", "fees_usd", "refunds_usd", "oldest_at"}}
		for _, q := range list {
			t.add(q.Source, q.Declared, q.Exits, q.Measured, q.Differing, q.Listed, q.Replaced,
				q.Ended, q.Fees.String(), q.Refunds.String(), timeText(q.OldestAt))
		}
		return t.print(k)
	})
}

type exitsHoldCmd struct {
	From string `required:"" help:"The first UTC day, as YYYY-MM-DD."`
	To   string `required:"" help:"The last UTC day."`
	signed
	Reason string `default:"not given" help:"Why, which is kept."`
}

// Run keeps days from deletion.
func (c exitsHoldCmd) Run(k *kit) error {
	from, errFrom := time.Parse(time.DateOnly, c.From)
	to, errTo := time.Parse(time.DateOnly, c.To)
	if errFrom != nil || errTo != nil {
		return errors.New("--from and --to are days such as 2026-05-15")
	}
	action := noted{c.signed, c.Reason}.action("exits hold", c.From+" to "+c.To)
	return do(k, action, func(ctx context.Context, service *exitlogs.Service) error {
		h, err := service.Hold(ctx, from, to, c.who(), c.Reason)
		if err != nil {
			return err
		}
		return k.record("id", h.ID, "from", c.From, "to", c.To, "by", h.Operator, "reason", h.Reason)
	})
}

type exitsHoldsCmd struct{}

// Run lists holds.
func (exitsHoldsCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, service *exitlogs.Service) error {
		list, err := service.Holds(ctx)
		if err != nil {
			return err
		}
		t := table{columns: []string{"id", "from", "to", "by", "reason", "created_at", "ended_at"}}
		for _, h := range list {
			t.add(h.ID, h.From.Format(time.DateOnly), h.To.Add(-time.Second).Format(time.DateOnly), h.Operator, h.Reason,
				timeText(h.CreatedAt), timeText(h.EndedAt))
		}
		return t.print(k)
	})
}

type exitsReleaseCmd struct {
	noted
	ID string `arg:"" name:"HOLD_ID" help:"The hold."`
}

// Run ends a hold.
func (c exitsReleaseCmd) Run(k *kit) error {
	return do(k, c.action("exits release", c.ID), func(ctx context.Context, service *exitlogs.Service) error {
		if err := service.Release(ctx, c.ID); err != nil {
			return err
		}
		return k.record("id", c.ID, "status", "released")
	})
}
