package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"agentproxy/app/exitlog"
	domain "agentproxy/domain/exitlog"
)

type exitsCmd struct {
	Lookup  exitsLookupCmd  `cmd:"" help:"Name who used an exit at a time; the look-up is kept. Exits with 1 if there is none."`
	Lookups exitsLookupsCmd `cmd:"" help:"List the look-ups, the newest first."`
	Hold    exitsHoldCmd    `cmd:"" help:"Keep UTC days of the log from deletion."`
	Holds   exitsHoldsCmd   `cmd:"" help:"List what is kept from deletion."`
	Release exitsReleaseCmd `cmd:"" help:"End a hold: its days are deleted when they are old enough."`
}

type exitsLookupCmd struct {
	ExitIP   string        `required:"" name:"exit-ip" help:"The exit's address, as the target logged it."`
	ExitPort uint16        `help:"Its source port; without it every connection of the exit is listed."`
	At       time.Time     `required:"" help:"When, as RFC 3339 with a zone: 2026-05-15T12:00:00Z."`
	Within   time.Duration `default:"5m" help:"By how much the clocks may differ, at most 24h."`
	Target   string        `help:"The target's host or address."`
	reasoned
}

// Run names who used an exit.
func (c exitsLookupCmd) Run(k *kit) error {
	addr, err := netip.ParseAddr(c.ExitIP)
	if err != nil {
		return fmt.Errorf("--exit-ip: %q is not an IP address", c.ExitIP)
	}
	var service *exitlog.Service
	action := c.action("exits lookup", addr.String())
	action.Details = fmt.Sprintf("port=%d at=%s within=%s target=%s", c.ExitPort, c.At.UTC().Format(time.RFC3339),
		c.Within, c.Target)
	return k.do(action, func(ctx context.Context) error {
		found, err := service.Lookup(ctx, exitlog.LookupInput{Operator: c.who(), Reason: c.Reason,
			Query: domain.Query{Exit: addr, Port: c.ExitPort, At: c.At.UTC(), Within: c.Within, Target: c.Target}})
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
	}, &service)
}

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
	var service *exitlog.Service
	return k.core(func(ctx context.Context) error {
		list, err := service.Lookups(ctx, max(c.Limit, 1))
		if err != nil {
			return err
		}
		t := table{columns: []string{"id", "at", "by", "reason", "exit_ip", "exit_port", "used_at", "within",
			"target", "found"}}
		for _, l := range list {
			t.add(l.ID, timeText(l.At), l.Operator, l.Reason, l.Query.Exit.String(), l.Query.Port, timeText(l.Query.At),
				l.Query.Within.String(), l.Query.Target, l.Found)
		}
		return t.print(k)
	}, &service)
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
	var service *exitlog.Service
	action := noted{c.signed, c.Reason}.action("exits hold", c.From+" to "+c.To)
	return k.do(action, func(ctx context.Context) error {
		h, err := service.Hold(ctx, from, to, c.who(), c.Reason)
		if err != nil {
			return err
		}
		return k.record("id", h.ID, "from", c.From, "to", c.To, "by", h.Operator, "reason", h.Reason)
	}, &service)
}

type exitsHoldsCmd struct{}

// Run lists holds.
func (exitsHoldsCmd) Run(k *kit) error {
	var service *exitlog.Service
	return k.core(func(ctx context.Context) error {
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
	}, &service)
}

type exitsReleaseCmd struct {
	noted
	ID string `arg:"" name:"HOLD_ID" help:"The hold."`
}

// Run ends a hold.
func (c exitsReleaseCmd) Run(k *kit) error {
	var service *exitlog.Service
	return k.do(c.action("exits release", c.ID), func(ctx context.Context) error {
		if err := service.Release(ctx, c.ID); err != nil {
			return err
		}
		return k.record("id", c.ID, "status", "released")
	}, &service)
}
