package main

import (
	"context"

	"agentproxy/app/ordering"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

type ordersCmd struct {
	List      ordersListCmd      `cmd:"" help:"List orders at providers, newest first."`
	Adopt     ordersAdoptCmd     `cmd:"" help:"Decide that the provider did make an unknown order."`
	Reconcile ordersReconcileCmd `cmd:"" help:"Compare what providers list with the orders: cancel or adopt what is ours, and list the rest."`
	Lost      ordersLostCmd      `cmd:"" help:"Decide that the provider does not have a confirmed order, which it does not deliver or show: its session ends with the unused part refunded."`
	Release   ordersReleaseCmd   `cmd:"" help:"Decide that the provider did not make an unknown order: the next source is tried, or the money given back."`
}

type ordersListCmd struct {
	Status   string `enum:",${order_statuses}" default:"" help:"Only orders of this status."`
	Provider string `help:"Only orders of this provider."`
	Frozen   bool   `help:"Only orders that wait for a decision."`
	Page     int    `default:"1" help:"Page, from 1."`
	PageSize int    `default:"100" help:"Orders per page, at most 100."`
}

// Run lists orders.
func (c ordersListCmd) Run(k *kit) error {
	page, err := pageOf(c.Page, c.PageSize)
	if err != nil {
		return err
	}
	return core(k, func(ctx context.Context, desk *ordering.Desk) error {
		list, err := desk.List(ctx, ordering.ListOrders{
			Filter: ports.OrderFilter{Status: procurement.Status(c.Status), Provider: c.Provider, Frozen: c.Frozen},
			Page:   page})
		if err != nil {
			return err
		}
		t := table{columns: []string{"order_id", "kind", "session_id", "provider", "status", "state", "ref", "cost",
			"max_cost", "excess", "reason",
			"planned_at", "sent_at", "frozen_at"}}
		for _, o := range list.Items {
			t.add(o.ID, o.Kind, o.SessionID, o.Provider, o.Status, o.State, o.Ref, o.Cost.String(),
				amountText(o.Intent.MaxCost), amountText(o.Excess()), reasonOf(o), timeText(o.PlannedAt),
				timeText(o.SentAt), timeText(o.FrozenAt))
		}
		return t.print(k)
	})
}

// amountText returns an amount, or nothing for 0.
func amountText(x domain.Money) string {
	if x == 0 {
		return ""
	}
	return x.String()
}

// reasonOf returns the class and the reason of a failed or unknown order.
func reasonOf(o procurement.Order) string {
	if o.Class == "" || o.Reason == "" {
		return string(o.Class) + o.Reason
	}
	return string(o.Class) + ": " + o.Reason
}

type ordersAdoptCmd struct {
	noted
	OrderID string `arg:"" name:"ORDER_ID"`
	Ref     string `help:"The provider's own id of the order; a renewal needs none."`
}

// Run adopts an order.
func (c ordersAdoptCmd) Run(k *kit) error {
	action := c.action("orders adopt", c.OrderID)
	action.Details = "provider_ref=" + c.Ref
	return do(k, action, func(ctx context.Context, desk *ordering.Desk) error {
		o, err := desk.Adopt(ctx, c.OrderID, c.Ref)
		if err != nil {
			return err
		}
		return k.record("order_id", o.ID, "status", o.Status, "ref", o.Ref)
	})
}

type ordersReleaseCmd struct {
	noted
	OrderID string `arg:"" name:"ORDER_ID"`
}

// Run releases an order.
func (c ordersReleaseCmd) Run(k *kit) error {
	return do(k, c.action("orders release", c.OrderID), func(ctx context.Context, desk *ordering.Desk) error {
		o, err := desk.Release(ctx, c.OrderID)
		if err != nil {
			return err
		}
		return k.record("order_id", o.ID, "status", o.Status)
	})
}

type ordersLostCmd struct {
	noted
	OrderID string `arg:"" name:"ORDER_ID"`
}

// Run gives up a confirmed order.
func (c ordersLostCmd) Run(k *kit) error {
	return do(k, c.action("orders lost", c.OrderID), func(ctx context.Context, desk *ordering.Desk) error {
		o, err := desk.Lost(ctx, c.OrderID)
		if err != nil {
			return err
		}
		return k.record("order_id", o.ID, "status", o.Status, "state", o.State)
	})
}
