package procurement

import (
	"context"
	"fmt"
	"strconv"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

func (r orders) Sealed(ctx context.Context, after int64, limit int) (list []ports.SealedDelivery, err error) {
	err = r.Rows(ctx, "SELECT seq, id, goods FROM upstream_orders WHERE seq > ?1 ORDER BY seq LIMIT ?2",
		[]any{after, limit}, func(rows engine.Row) error {
			var d ports.SealedDelivery
			err := rows.Scan(&d.Position, &d.OrderID, &d.Sealed)
			list = append(list, d)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("list sealed deliveries: %w", err)
	}
	return list, nil
}

func (r orders) Reseal(_ context.Context, d ports.SealedDelivery, sealed []byte) (bool, error) {
	n, err := r.Exec("UPDATE upstream_orders SET goods = ?3 WHERE id = ?1 AND goods = ?2",
		d.OrderID, d.Sealed, sealed)
	if err != nil {
		return false, fmt.Errorf("reseal the delivery of %s: %w", d.OrderID, err)
	}
	return n > 0, nil
}

// Resealed is the name under which it is kept when every delivery was last sealed under the current root secret.
const Resealed = "resealed"

func (r orders) KeepResealed(context.Context) error {
	at := strconv.FormatInt(r.Database.Now().UnixMicro(), 10)
	return r.Later("keep when deliveries were sealed anew", setValue, Resealed, []byte(at))
}
