package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

// agents keeps accounts.
type agents struct{ *tx }

func (r agents) Insert(ctx context.Context, a account.Agent) error {
	row := toAgentRow(a)
	if err := r.Write(ctx).Create(&row).Error; err != nil {
		return fmt.Errorf("insert agent %s: %w", a.ID, err)
	}
	return nil
}

// Put writes every column that may change, zero values included.
func (r agents) Put(ctx context.Context, a account.Agent) error {
	row := toAgentRow(a)
	done := r.Write(ctx).Model(&agentRow{}).Where("id = ?", a.ID).
		Select("*").Omit("id", "referrer_id", "registered_from", "registered_with", "created_at").Updates(&row)
	if done.Error != nil {
		return fmt.Errorf("write agent %s: %w", a.ID, done.Error)
	}
	if done.RowsAffected == 0 {
		return account.ErrNotFound
	}
	return r.NoteChange(a.ID, "")
}

const agentSelect = `SELECT a.id, a.billing_user_id, a.name, a.contact_email, a.webhook_url, a.description, a.status,
	a.disabled_for, a.verified_for, a.key_hash, a.key_hint, a.key_created_at, a.key_used_at, a.secret_hash,
	a.token_version, a.webhook_version, a.per_minute, a.registered_from, a.registered_with, a.created_at, a.updated_at,
	f.id, f.name, f.code, f.is_default, f.disabled
	FROM agents a JOIN referrers f ON f.id = a.referrer_id `

func (r agents) Get(_ context.Context, id string) (account.Agent, error) {
	if r.batch != nil {
		return r.batch.agent(id)
	}
	return r.one("WHERE a.id = ?1", id)
}

func (r agents) one(where string, arg any) (account.Agent, error) {
	a, err := scanAgent(r.Row(agentSelect+where+r.ForUpdate("a"), arg))
	if errors.Is(err, sql.ErrNoRows) {
		return account.Agent{}, account.ErrNotFound
	}
	if err != nil {
		return account.Agent{}, fmt.Errorf("read agent: %w", err)
	}
	return a, nil
}

func (r agents) List(
	ctx context.Context, f ports.AgentFilter, page domain.Page,
) (domain.List[account.Agent], error) {
	list := domain.List[account.Agent]{Page: page}
	c := agentWhere(f)
	count := "SELECT COUNT(*) FROM agents a JOIN referrers f ON f.id = a.referrer_id" + c.Where()
	err := r.Row(count, c.Args...).Scan(&list.Total)
	if err == nil {
		query := agentSelect + c.Where() + " ORDER BY a.seq DESC" + c.Page(page)
		err = r.Rows(ctx, query, c.Args, func(rows engine.Row) error {
			a, err := scanAgent(rows)
			list.Items = append(list.Items, a)
			return err
		})
	}
	if err != nil {
		return list, fmt.Errorf("list agents: %w", err)
	}
	return list, nil
}

func (r agents) ForgetOrigins(_ context.Context, before time.Time, limit int) (int, error) {
	none := []byte{}
	n, err := r.Exec(`UPDATE agents SET registered_from = ?1, registered_with = '' WHERE id IN (
		SELECT id FROM agents WHERE length(registered_from) > 0 AND created_at < ?2 LIMIT ?3)`,
		none, column.Micros(before), limit)
	if err != nil {
		return 0, fmt.Errorf("forget where agents registered: %w", err)
	}
	return int(n), nil
}
