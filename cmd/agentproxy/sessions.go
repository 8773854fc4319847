package main

import (
	"context"
	"fmt"

	"agentproxy/app/operator"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

type sessionCmd struct {
	List sessionListCmd `cmd:"" help:"List sessions of all agents, newest first."`
	Show sessionShowCmd `cmd:"" help:"Show one session, its money and its orders at sellers."`
	End  sessionEndCmd  `cmd:"" help:"End a live session; traffic that was not used and whole days that are left are given back."`
}

type sessionListCmd struct {
	Agent    string `placeholder:"AGENT_ID" help:"Only sessions of this agent."`
	Status   string `enum:",${session_statuses}" default:"" help:"Only sessions of this status."`
	Type     string `enum:",${session_types}" default:"" help:"Only sessions of this type."`
	Product  string `placeholder:"CODE" help:"Only sessions of this product."`
	Provider string `placeholder:"NAME" help:"Only sessions that this provider sold."`
	Page     int    `default:"1" help:"Page, from 1."`
	PageSize int    `default:"100" help:"Sessions per page, at most 100."`
}

// Run lists sessions.
func (c sessionListCmd) Run(k *kit) error {
	page, err := pageOf(c.Page, c.PageSize)
	if err != nil {
		return err
	}
	return core(k, func(ctx context.Context, service *operator.Sessions) error {
		list, err := service.List(ctx, ports.OverviewFilter{AgentID: c.Agent, Status: session.Status(c.Status),
			Type: session.Type(c.Type), ProductNo: c.Product, Provider: c.Provider}, page)
		if err != nil {
			return err
		}
		t := table{columns: []string{"session_id", "agent_id", "type", "status", "reason", "product_no", "provider",
			"used_bytes", "held", "charged", "refunded", "created_at", "ended_at", "unbooked"}}
		for _, s := range list.Items {
			charged, held, unbooked := s.Cost()
			t.add(s.ID, s.AgentID, s.Type, s.Status, s.Reason, s.ProductNo, s.Provider, s.Usage.Used(),
				held.Total().String(), charged.Total().String(), s.Money.Refunded.Total().String(),
				timeText(s.CreatedAt), timeText(s.EndedAt), unbooked.String())
		}
		return t.print(k)
	})
}

type sessionShowCmd struct {
	SessionID string `arg:"" name:"SESSION_ID"`
}

// Run shows one session.
func (c sessionShowCmd) Run(k *kit) error {
	return core(k, func(ctx context.Context, service *operator.Sessions) error {
		d, err := service.Show(ctx, c.SessionID)
		if err != nil {
			return err
		}
		s, exits := d.Session, words{}
		for _, e := range s.Exits {
			exits = append(exits, addressText(e.IP))
		}
		charged, held, unbooked := d.SessionRead.Cost()
		fields := []any{"session_id", s.ID, "agent_id", s.AgentID, "type", s.Type, "status", s.Status, "reason", s.Reason,
			"failure", s.Failure.Code, "product_no", s.ProductNo, "provider", s.Provider, "country", s.Location.Country,
			"quantity", s.Quantity, "exits", exits, "bought_bytes", s.Bytes, "used_bytes", d.Usage.Used(), "connections",
			d.Usage.Connections, "price", s.Price.String(), "held", held.Total().String(),
			"charged", charged.Total().String(), "charged_trial", charged.Trial.String(), "unbooked", unbooked.String(),
			"refunded", s.Money.Refunded.Total().String(), "cost", d.Cost.String(), "rotations", s.Rotation.Count,
			"created_at", timeText(s.CreatedAt), "activated_at", timeText(s.ActivatedAt), "expires_at", timeText(s.ExpiresAt),
			"ended_at", timeText(s.EndedAt)}
		orders := table{columns: []string{"order_id", "kind", "provider", "status", "state", "ref", "cost", "reason",
			"planned_at", "decided_at"}}
		for _, o := range d.Orders {
			orders.add(o.ID, o.Kind, o.Provider, o.Status, o.State, o.Ref, o.Cost.String(), reasonOf(o), timeText(o.PlannedAt),
				timeText(o.DecidedAt))
		}
		if k.json {
			return k.record(append(fields, "orders", orders.objects())...)
		}
		if err := k.record(fields...); err != nil || len(orders.rows) == 0 {
			return err
		}
		fmt.Fprintln(k.out)
		return orders.print(k)
	})
}

type sessionEndCmd struct {
	SessionID string `arg:"" name:"SESSION_ID"`
	reasoned
}

// Run ends a session.
func (c sessionEndCmd) Run(k *kit) error {
	return do(k, c.action("session end", c.SessionID), func(ctx context.Context, service *operator.Sessions) error {
		s, err := service.End(ctx, c.SessionID)
		if err != nil {
			return err
		}
		return k.record("session_id", s.ID, "agent_id", s.AgentID, "status", s.Status, "reason", s.Reason,
			"charged", s.Money.Charged.Total().String(), "refunded", s.Money.Refunded.Total().String())
	})
}

type refundCmd struct {
	SessionID string `arg:"" name:"SESSION_ID"`
	Percent   int    `required:"" help:"How much of all that the session was charged, 1 to 100."`
	Ref       string `help:"Your reference of this refund: a second run with the same one books nothing."`
	signed
	Reason string `required:"" help:"Why; shown to the agent."`
}

// Run refunds a part of a session.
func (c refundCmd) Run(k *kit) error {
	action := reasoned{c.signed, c.Reason}.action("refund", c.SessionID)
	action.Ref, action.Details = c.Ref, fmt.Sprintf("percent=%d", c.Percent)
	return do(k, action, func(ctx context.Context, service *operator.Sessions) error {
		e, err := service.Refund(ctx, operator.Refund{SessionID: c.SessionID, Percent: c.Percent, Reason: c.Reason,
			Ref: c.Ref})
		if err != nil {
			return err
		}
		return k.record("transaction_id", e.ID, "agent_id", e.AgentID, "session_id", e.SessionID, "amount",
			e.Amount().String(), "balance_after", e.BalanceAfter.String())
	})
}
