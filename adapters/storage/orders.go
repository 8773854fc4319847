package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// orders keeps what was bought of providers. What it lists and counts is in
// orderlists.go.
type orders struct{ *tx }

var insertUpstream = `INSERT INTO upstream_orders (` + upstreamSelect + `)
	VALUES (` + placeholders(1, len(upstreamColumns)) + `)`

func (r orders) Insert(_ context.Context, o procurement.Order) error {
	if o.Intent.Key != o.ID || o.Intent.SessionID != o.SessionID {
		return fmt.Errorf("insert upstream order %s: its intent is of order %q and session %q, not %q",
			o.ID, o.Intent.Key, o.Intent.SessionID, o.SessionID)
	}
	values, err := upstreamValues(o)
	if err == nil {
		_, err = r.exec(insertUpstream, values...)
	}
	if err != nil {
		return fmt.Errorf("insert upstream order %s: %w", o.ID, err)
	}
	return nil
}

var loadUpstream = `SELECT ` + upstreamSelect + ` FROM upstream_orders WHERE id = ?1`

func (r orders) Get(_ context.Context, id string) (procurement.Order, error) {
	return oneUpstream(id, r.row(loadUpstream+r.lock("upstream_orders"), id))
}

// byUpstreamRef finds what was bought before what extends it.
var byUpstreamRef = `SELECT ` + upstreamSelect + ` FROM upstream_orders WHERE provider = ?1 AND ref = ?2 AND ref <> ''
	AND status = 'confirmed' ORDER BY kind, seq DESC LIMIT 1`

func (r orders) ByRef(_ context.Context, provider, ref string) (procurement.Order, error) {
	return oneUpstream(ref, r.row(byUpstreamRef+r.lock("upstream_orders"), provider, ref))
}

func oneUpstream(name string, row engine.Row) (procurement.Order, error) {
	o, err := scanUpstreamOrder(row)
	if errors.Is(err, sql.ErrNoRows) {
		return procurement.Order{}, procurement.ErrOrderNotFound
	}
	if err != nil {
		return procurement.Order{}, fmt.Errorf("read upstream order %s: %w", name, err)
	}
	return o, nil
}

// putUpstream changes nothing when the order is a confirmed purchase and another
// one has its ref. Of two that are written at once the unique index refuses one,
// which is run again.
var putUpstream = `UPDATE upstream_orders SET (` + strings.Join(upstreamColumns[upstreamFixed:], ", ") + `) = (` +
	placeholders(2, len(upstreamColumns)-upstreamFixed) + `) WHERE id = ?1
	AND (kind <> 'purchase' OR ?2 <> 'confirmed' OR NOT EXISTS (SELECT 1 FROM upstream_orders other
		WHERE other.provider = upstream_orders.provider AND other.ref = ?3 AND other.id <> ?1
		AND other.kind = 'purchase' AND other.status = 'confirmed' AND other.ref <> ''))
	RETURNING session_id`

func (r orders) Put(ctx context.Context, o procurement.Order) error {
	values, err := upstreamValues(o)
	if err != nil {
		return fmt.Errorf("write upstream order %s: %w", o.ID, err)
	}
	values = values[upstreamFixed-1:]
	values[0] = o.ID
	var sessionID string
	switch err := r.returning(putUpstream, values, &sessionID); {
	case errors.Is(err, sql.ErrNoRows):
		if _, err := r.Get(ctx, o.ID); err != nil {
			return err
		}
		return ports.ErrDuplicate
	case err != nil:
		return fmt.Errorf("write upstream order %s: %w", o.ID, err)
	case sessionID == "":
		return nil
	}
	return r.noteChange("", sessionID)
}
