package main

import (
	"context"
	"fmt"

	"agentproxy/app/reconcile"
	"agentproxy/domain/procurement"
)

type ordersReconcileCmd struct {
	noted
	Provider string `arg:"" optional:"" name:"PROVIDER" help:"One provider; without it all that have a list."`
}

// Run compares what providers have with the orders, and lists what differs. It fails if a
// provider cannot be read.
func (c ordersReconcileCmd) Run(k *kit) error {
	return do(k, c.action("orders reconcile", c.Provider), func(ctx context.Context, service *reconcile.Service) error {
		reports, err := service.Run(ctx, c.Provider)
		if err != nil {
			return err
		}
		failed := 0
		t := table{columns: []string{"provider", "what", "outcome", "ref", "order_id", "session_id", "state", "sku",
			"country", "quantity", "created_at", "expires_at", "reason"}}
		for _, r := range reports {
			if r.Err != nil {
				failed++
				t.add(r.Provider, "failed", "", "", "", "", "", "", "", 0, "", "", procurement.ReasonOf(r.Err))
				continue
			}
			t.add(r.Provider, "total", "", "", "", "", "", "", "", r.Listed, "", "",
				fmt.Sprintf("%d listed, %d as they should be, %d orphans", r.Listed, r.Kept, r.Orphans()))
			for _, f := range r.Findings {
				t.add(r.Provider, f.Disposition, f.Outcome, f.Ref, f.OrderID, f.SessionID, f.State, f.SKU, f.Location.Country,
					f.Quantity, timeText(f.CreatedAt), timeText(f.ExpiresAt), f.Reason)
			}
		}
		if err := t.print(k); err != nil || failed == 0 {
			return err
		}
		return fmt.Errorf("%d of %s could not be read", failed, count(len(reports), "provider"))
	})
}
