package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/account"
)

// keys keeps the API keys of accounts besides the first ones.
type keys struct{ *tx }

func (r keys) Owner(_ context.Context, hash []byte) (agentID string, err error) {
	err = r.row(
		`SELECT id FROM agents WHERE key_hash = ?1 UNION ALL SELECT agent_id FROM api_keys WHERE hash = ?1 LIMIT 1`,
		hash).Scan(&agentID)
	if errors.Is(err, sql.ErrNoRows) {
		return "", account.ErrNotFound
	}
	return agentID, wrap("look a key up", err)
}

func (r keys) Further(ctx context.Context, agentID string) ([]account.Key, error) {
	var list []account.Key
	err := r.rows(ctx, `SELECT id, agent_id, name, hash, hint, permissions, replaced, created_at, expires_at, used_at
		FROM api_keys WHERE agent_id = ?1 ORDER BY seq DESC`, []any{agentID}, func(row engine.Row) error {
		var k account.Key
		var permissions string
		var created, expires, used int64
		err := row.Scan(&k.ID, &k.AgentID, &k.Name, &k.Hash, &k.Hint, &permissions, &k.Replaced, &created, &expires, &used)
		for word := range strings.FieldsSeq(permissions) {
			k.Scopes = append(k.Scopes, account.Scope(word))
		}
		k.Created, k.Expires, k.Used = fromMicros(created), fromMicros(expires), fromMicros(used)
		list = append(list, k)
		return err
	})
	return list, wrap("list keys of "+agentID, err)
}

func (r keys) Insert(_ context.Context, k account.Key) error {
	permissions := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		permissions[i] = string(s)
	}
	_, err := r.exec(
		`INSERT INTO api_keys (id, agent_id, name, hash, hint, permissions, replaced, created_at, expires_at, used_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`,
		k.ID, k.AgentID, k.Name, k.Hash, k.Hint, strings.Join(permissions, " "), flag(k.Replaced), micros(k.Created),
		micros(k.Expires), micros(k.Used))
	if err != nil {
		return fmt.Errorf("insert key %s: %w", k.ID, err)
	}
	return r.noteChange(k.AgentID, "")
}

func (r keys) Delete(_ context.Context, agentID, id string) error {
	n, err := r.exec(`DELETE FROM api_keys WHERE agent_id = ?1 AND id = ?2`, agentID, id)
	if err != nil {
		return fmt.Errorf("delete key %s: %w", id, err)
	}
	if n == 0 {
		return account.ErrKeyNotFound
	}
	return r.noteChange(agentID, "")
}

func (r keys) Used(_ context.Context, at time.Time, agentIDs, keyIDs []string) error {
	set := func(statement string, ids []string) error {
		if len(ids) == 0 {
			return nil
		}
		list, size := in(2, len(ids))
		args := []any{micros(at)}
		for i := range size {
			args = append(args, ids[min(i, len(ids)-1)])
		}
		_, err := r.exec(statement+list, args...)
		return wrap("note the use of keys", err)
	}
	if r.locks() && len(agentIDs) > 0 { // as batches of units lock them, which are many
		_ = r.Queue("lock agents", "SELECT 1 FROM agents WHERE id = ANY(?1::text[]) ORDER BY id FOR "+rowLock,
			[]any{agentIDs})
	}
	if err := set(`UPDATE agents SET key_used_at = ?1 WHERE id IN `, agentIDs); err != nil {
		return err
	}
	return set(`UPDATE api_keys SET used_at = ?1 WHERE id IN `, keyIDs)
}
