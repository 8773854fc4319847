package storage

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"gorm.io/gorm/clause"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/ledger"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/domain/recharge"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// ormSession is sessionRow as GORM reads it.
type ormSession struct {
	Identity sessions.Identity `gorm:"embedded"`
	State    sessions.State    `gorm:"embedded"`
}

func (ormSession) TableName() string { return "sessions" }

// ormAgent is an account with its referrer.
type ormAgent struct {
	ID, BillingUserID, Name, ContactEmail, WebhookURL, Description string
	Status, DisabledFor, VerifiedFor                               string
	KeyHash                                                        []byte
	KeyHint                                                        string
	KeyCreatedAt, KeyUsedAt                                        int64
	SecretHash                                                     []byte
	TokenVersion, WebhookVersion                                   int64
	PerMinute                                                      *int
	ReferrerID                                                     string
	RegisteredFrom                                                 []byte
	RegisteredWith                                                 string
	CreatedAt, UpdatedAt                                           int64
	Referrer                                                       ormReferrer `gorm:"foreignKey:ReferrerID"`
}

type ormReferrer struct {
	ID, Name, Code       string
	IsDefault, Disabled  bool
	CreatedAt, UpdatedAt int64
}

func (ormReferrer) TableName() string { return "referrers" }

// ormEvent is a row of outbox.
type ormEvent struct {
	ID, AgentID, Type string
	At                int64
	Data              string
}

func (ormEvent) TableName() string { return "outbox" }

func (ormAgent) TableName() string { return "agents" }

// ormCall is a row of idempotency_keys.
type ormCall struct {
	AgentID, Path, Key string
	Request            []byte
	Resource           string
	Status             int
	CreatedAt          int64 `gorm:"autoCreateTime:false"`
}

func (ormCall) TableName() string { return "idempotency_keys" }

// BenchmarkByHandAndByGORM compares a hand-written statement with GORM for the same call. The table of
// docs/adr/0005-hand-written-sql.md has the ratios.
func BenchmarkByHandAndByGORM(b *testing.B) {
	st, err := Open(b.Context(), Config{Path: filepath.Join(b.TempDir(), "bench.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	if err := st.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := st.Update(b.Context(), ports.ReadSet{}, benchRows); err != nil {
		b.Fatal(err)
	}
	var row sessions.Row
	orderColumns := "id, agent_id, network, address, amount, received, status, created_at, expires_at, paid_at"
	for _, c := range []struct {
		call      string
		hand, orm func(context.Context, *tx) error
	}{
		{"read session", func(ctx context.Context, t *tx) error {
			_, err := t.Sessions().Load(ctx, "sess_1")
			return errors.Join(err, t.Set.Forget())
		}, func(ctx context.Context, t *tx) error {
			var row ormSession
			err := t.Locked(ctx).Where("id = ?", "sess_1").Take(&row).Error
			if err == nil {
				_, err = sessions.FromRow(&sessions.Row{Identity: row.Identity, State: row.State})
			}
			return err
		}},
		{"read and write session", func(ctx context.Context, t *tx) error {
			s, err := t.Sessions().Load(ctx, "sess_1")
			return errors.Join(err, t.Sessions().Put(ctx, s), t.Set.Forget())
		}, func(ctx context.Context, t *tx) error {
			var found ormSession
			if err := t.Locked(ctx).Where("id = ?", "sess_1").Take(&found).Error; err != nil {
				return err
			}
			return t.Write(ctx).Model(&ormSession{}).Where("id = ? AND agent_id = ?", "sess_1", "agt_1").Select("*").Updates(&row.State).Error
		}},
		{"read wallet", func(ctx context.Context, t *tx) error {
			_, err := t.Ledger().Wallet(ctx, "agt_1")
			return errors.Join(err, t.Set.Forget())
		}, func(ctx context.Context, t *tx) error {
			var row ledger.Row
			err := t.Locked(ctx).Where("agent_id = ?", "agt_1").Take(&row).Error
			if err == nil {
				_, err = ledger.FromRow(row)
			}
			return err
		}},
		{"read agent with referrer", func(ctx context.Context, t *tx) error {
			_, err := t.Agents().Get(ctx, "agt_1")
			return err
		}, func(ctx context.Context, t *tx) error {
			var row ormAgent
			return t.Locked(ctx).InnerJoins("Referrer").Where("agents.id = ?", "agt_1").Take(&row).Error
		}},
		{"write idempotency key", func(ctx context.Context, t *tx) error {
			return t.Idempotency().Keep(ctx, ports.Call{AgentID: "agt_1", Path: "/v1/sessions", Key: "k"})
		}, func(ctx context.Context, t *tx) error {
			row := ormCall{AgentID: "agt_1", Path: "/v1/sessions", Key: "k", Request: []byte{}}
			return t.Write(ctx).Clauses(clause.OnConflict{UpdateAll: true, Columns: []clause.Column{{Name: "agent_id"}, {Name: "path"}, {Name: "key"}}}).Create(&row).Error
		}},
		{"append to outbox", func(ctx context.Context, t *tx) error {
			return t.Later("append", "INSERT INTO outbox (id, agent_id, type, at, data) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING", "evt_1", "agt_1", "x", 1, "{}")
		}, func(ctx context.Context, t *tx) error {
			return t.Write(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&ormEvent{ID: "evt_1", AgentID: "agt_1", Type: "x", Data: "{}"}).Error
		}},
		{"read recharge order", func(ctx context.Context, t *tx) error {
			var o recharge.Order
			var created, expires, paid int64
			return t.Row("SELECT "+orderColumns+" FROM recharge_orders WHERE id = ?1", "PAY1").Scan(&o.ID, &o.AgentID, &o.Network,
				&o.Address, &o.Amount, &o.Received, &o.Status, &created, &expires, &paid)
		}, func(ctx context.Context, t *tx) error {
			_, err := t.Recharges().LoadOrder(ctx, "PAY1")
			return err
		}},
		{"insert delivery", func(ctx context.Context, t *tx) error {
			_, err := t.Exec(`INSERT INTO webhook_deliveries (id, agent_id, event_id, type, status, attempts, tries, last_status_code,
				last_error, next_attempt_at, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING`,
				"dlv_1", "agt_1", "evt_1", "x", "pending", 0, 0, 0, "", 1, 1)
			return err
		}, func(ctx context.Context, t *tx) error {
			_ = t.Webhooks().InsertDelivery(ctx, webhook.Delivery{ID: "dlv_1", AgentID: "agt_1", EventID: "evt_1", Status: "pending"})
			return nil
		}},
	} {
		for name, call := range map[string]func(context.Context, *tx) error{"hand": c.hand, "gorm": c.orm} {
			b.Run(c.call+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				err := st.update(b.Context(), &ports.ReadSet{}, func(in *engine.Transaction) error {
					t := st.unit(in.Conn, in)
					for b.Loop() {
						if err := call(context.Background(), t); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// benchRows adds the rows that the benchmark reads.
func benchRows(ctx context.Context, unit ports.Tx) error {
	t := unit.(*tx)
	s := session.Session{ID: "sess_1", AgentID: "agt_1", Type: session.Dynamic, Status: session.Active}
	if err := t.Sessions().Insert(ctx, s); err != nil {
		return err
	}
	for _, statement := range []string{
		`INSERT INTO agents (id, billing_user_id, name, contact_email, webhook_url, description, status, disabled_for, key_hash,
			secret_hash, token_version, webhook_version, referrer_id, created_at, updated_at)
			VALUES ('agt_1', '', '', '', '', '', 'active', '', x'01', x'01', 0, 0, 'ref_openagent', 0, 0)`,
		`INSERT INTO recharge_orders (id, agent_id, network, address, amount, received, status, created_at, expires_at, paid_at)
			VALUES ('PAY1', 'agt_1', 'tron', 'T', 1, 0, 'pending', 0, 0, 0)`,
	} {
		if _, err := t.Exec(statement); err != nil {
			return err
		}
	}
	return t.Write(ctx).Create(&ledger.Row{AgentID: "agt_1"}).Error
}
