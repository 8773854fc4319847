// Package procurement keeps what is bought of providers: orders, claimed lines, static addresses, and
// how their lists and counts compared with ours.
package procurement

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/work"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// orders keeps what was bought of providers. What it lists and counts is in orderlists.go.
type orders struct{ *work.Unit }

// Orders returns the orders at providers in a unit.
func Orders(u *work.Unit) ports.Orders { return orders{u} }

func (r orders) Insert(ctx context.Context, o procurement.Order) error {
	if o.Intent.Key != o.ID || o.Intent.SessionID != o.SessionID {
		return fmt.Errorf("insert upstream order %s: its intent is of order %q and session %q, not %q",
			o.ID, o.Intent.Key, o.Intent.SessionID, o.SessionID)
	}
	row, err := toOrderRow(o)
	if err == nil {
		_, err = r.Written(r.Write(ctx).Create(&row))
	}
	return work.Wrap("insert upstream order "+o.ID, err)
}

func (r orders) Get(ctx context.Context, id string) (procurement.Order, error) {
	return r.one(id, r.Locked(ctx).Where("id = ?", id))
}

// ByRef sorts a purchase before the renewals that extend it.
func (r orders) ByRef(ctx context.Context, provider, ref string) (procurement.Order, error) {
	return r.one(ref, r.Locked(ctx).
		Where("provider = ? AND ref = ? AND ref <> '' AND status = 'confirmed'", provider, ref).Order("kind, seq DESC"))
}

func (r orders) one(name string, query *gorm.DB) (procurement.Order, error) {
	var row orderRow
	found, err := work.One(query, &row)
	if err != nil {
		return procurement.Order{}, fmt.Errorf("read upstream order %s: %w", name, err)
	}
	if !found {
		return procurement.Order{}, procurement.ErrOrderNotFound
	}
	return fromOrderRow(row)
}

// refIsFree holds for an order that is not a confirmed purchase, and for one whose ref no other
// confirmed purchase has. Of two that are written at the same time the unique index refuses one,
// which then runs again.
const refIsFree = `(kind <> 'purchase' OR @status <> 'confirmed' OR NOT EXISTS (SELECT 1 FROM upstream_orders other
	WHERE other.provider = upstream_orders.provider AND other.ref = @ref AND other.id <> @id
	AND other.kind = 'purchase' AND other.status = 'confirmed' AND other.ref <> ''))`

func (r orders) Put(ctx context.Context, o procurement.Order) error {
	row, err := toOrderRow(o)
	if err != nil {
		return fmt.Errorf("write upstream order %s: %w", o.ID, err)
	}
	if err := r.correctKeptDay(ctx, o); err != nil {
		return err
	}
	var stored orderRow
	sessionID := clause.Returning{Columns: []clause.Column{{Name: "session_id"}}}
	n, err := r.Written(r.Write(ctx).Model(&stored).Clauses(sessionID).
		Where("id = ?", o.ID).
		Where(refIsFree, map[string]any{"status": string(o.Status), "ref": o.Ref, "id": o.ID}).
		Select("*").Updates(&row.Progress))
	switch {
	case err != nil:
		return fmt.Errorf("write upstream order %s: %w", o.ID, err)
	case n == 0:
		if _, err := r.Get(ctx, o.ID); err != nil {
			return err
		}
		return ports.ErrDuplicate
	case stored.Plan.SessionID == "":
		return nil
	}
	return r.NoteChange("", stored.Plan.SessionID)
}
