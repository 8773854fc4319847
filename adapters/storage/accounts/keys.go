package accounts

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

// keys keeps the API keys of accounts besides the first ones.
type keys struct{ *work.Unit }

// Keys returns the API keys in a unit.
func Keys(u *work.Unit) ports.Keys { return keys{u} }

func (r keys) Owner(_ context.Context, hash []byte) (agentID string, err error) {
	err = r.Row(
		`SELECT id FROM agents WHERE key_hash = ?1 UNION ALL SELECT agent_id FROM api_keys WHERE hash = ?1 LIMIT 1`,
		hash).Scan(&agentID)
	if errors.Is(err, sql.ErrNoRows) {
		return "", account.ErrNotFound
	}
	return agentID, work.Wrap("look a key up", err)
}

// keyRow is a row of api_keys.
type keyRow struct {
	ID          string
	AgentID     string
	Name        string
	Hash        []byte
	Hint        string
	Parent      string
	Permissions string // with spaces; empty: all
	Replaced    bool
	CreatedAt   time.Time `gorm:"serializer:micros"`
	ExpiresAt   time.Time `gorm:"serializer:micros"`
	UsedAt      time.Time `gorm:"serializer:micros"`
}

func (keyRow) TableName() string { return "api_keys" }

func toKeyRow(k account.Key) keyRow {
	permissions := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		permissions[i] = string(s)
	}
	return keyRow{ID: k.ID, AgentID: k.AgentID, Name: k.Name, Hash: k.Hash, Hint: k.Hint, Parent: k.Parent,
		Permissions: strings.Join(permissions, " "), Replaced: k.Replaced, CreatedAt: k.Created, ExpiresAt: k.Expires,
		UsedAt: k.Used}
}

func fromKeyRow(row keyRow) account.Key {
	k := account.Key{ID: row.ID, AgentID: row.AgentID, Name: row.Name, Hash: row.Hash, Hint: row.Hint, Parent: row.Parent,
		Replaced: row.Replaced, Created: row.CreatedAt, Expires: row.ExpiresAt, Used: row.UsedAt}
	for word := range strings.FieldsSeq(row.Permissions) {
		k.Scopes = append(k.Scopes, account.Scope(word))
	}
	return k
}

func (r keys) Further(ctx context.Context, agentID string) ([]account.Key, error) {
	list, err := work.All(r.ORM(ctx).Where("agent_id = ?", agentID).Order("seq DESC"), fromKeyRow)
	return list, work.Wrap("list keys of "+agentID, err)
}

func (r keys) Insert(ctx context.Context, k account.Key) error {
	row := toKeyRow(k)
	if _, err := r.Written(r.Write(ctx).Create(&row)); err != nil {
		return fmt.Errorf("insert key %s: %w", k.ID, err)
	}
	return r.NoteChange(k.AgentID, "")
}

func (r keys) Delete(ctx context.Context, agentID, id string) error {
	n, err := r.Written(r.Write(ctx).Where("agent_id = ? AND id = ?", agentID, id).Delete(&keyRow{}))
	if err != nil {
		return fmt.Errorf("delete key %s: %w", id, err)
	}
	if n == 0 {
		return account.ErrKeyNotFound
	}
	return r.NoteChange(agentID, "")
}

func (r keys) EndAt(ctx context.Context, agentID, id string, at time.Time) error {
	n, err := r.Written(r.Write(ctx).Model(&keyRow{}).Where("agent_id = ? AND id = ?", agentID, id).
		Update("expires_at", column.Micros(at)))
	if err != nil {
		return fmt.Errorf("end key %s: %w", id, err)
	}
	if n == 0 {
		return account.ErrKeyNotFound
	}
	return r.NoteChange(agentID, "")
}

func (r keys) Used(_ context.Context, at time.Time, agentIDs, keyIDs []string) error {
	set := func(statement string, ids []string) error {
		if len(ids) == 0 {
			return nil
		}
		list, size := work.In(2, len(ids))
		args := []any{column.Micros(at)}
		for i := range size {
			args = append(args, ids[min(i, len(ids)-1)])
		}
		_, err := r.Exec(statement+list, args...)
		return work.Wrap("note the use of keys", err)
	}
	if len(agentIDs) > 0 { // as batches of units lock them, which are many
		_ = r.LockFirst("lock agents", "SELECT 1 FROM agents WHERE id = ANY(?1::text[]) ORDER BY id FOR "+work.RowLock,
			agentIDs)
	}
	if err := set(`UPDATE agents SET key_used_at = ?1 WHERE id IN `, agentIDs); err != nil {
		return err
	}
	return set(`UPDATE api_keys SET used_at = ?1 WHERE id IN `, keyIDs)
}
