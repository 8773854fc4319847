package storage_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/test/link"
	"agentproxy/test/pg"
)

// BenchmarkDelay is a purchase and a telemetry batch of 20 events of 32 callers, each an agent, with a server
// that is a delay away in each direction, for numbers of committers. Beside it is the purchase that GORM makes
// plainly: a debit, a session and an entry in a transaction, on as many connections.
func BenchmarkDelay(b *testing.B) {
	for _, delay := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		b.Run(fmt.Sprintf("delay=%v/buy=gorm", delay), func(b *testing.B) { buyPlainly(b, delay) })
		for _, committers := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("delay=%v/buy=%d", delay, committers), func(b *testing.B) {
				st := delayed(b, delay, committers)
				var n atomic.Int64
				callers(b, func() error {
					i := n.Add(1)
					return buyAhead(context.Background(), st, agentNo(i), i, nothing)
				})
			})
			b.Run(fmt.Sprintf("delay=%v/report=%d", delay, committers), func(b *testing.B) {
				st := delayed(b, delay, committers)
				own := map[int64][]string{}
				for i := range int64(320) {
					if err := buyAhead(b.Context(), st, agentNo(i), i, nothing); err != nil {
						b.Fatal(err)
					}
					own[i%32] = append(own[i%32], sessionID(i))
				}
				var n atomic.Int64
				callers(b, func() error {
					i := n.Add(1)
					return reportAhead(context.Background(), st, agentNo(i), own[i%32]...)
				})
			})
		}
	}
}

func agentNo(i int64) string { return fmt.Sprintf("agt_%02d", i%32) }

// delayed opens a store with 32 agents.
func delayed(b *testing.B, delay time.Duration, committers int) *storage.Store {
	b.Helper()
	storage.SetCommitters(committers)
	b.Cleanup(func() { storage.SetCommitters(0) })
	_, url := link.New(b, pg.Database(b), delay)
	st := openURL(b, url)
	for i := range int64(32) {
		addAgent(b, st, agentNo(i), 1_000_000*domain.Dollar)
	}
	return st
}

// callers has 32 callers do something as often as the benchmark asks.
func callers(b *testing.B, do func() error) {
	b.SetParallelism(16)
	defer cpu(b)()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := do(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

type (
	plainAgent struct {
		ID      string
		Balance int64
	}
	plainSession struct{ ID, AgentID, Type, Status, ProxyURL string }
	plainEntry   struct {
		ID                 uint
		AgentID, SessionID string
		Amount             int64
	}
)

func buyPlainly(b *testing.B, delay time.Duration) {
	_, url := link.New(b, pg.Database(b), delay)
	db, err := gorm.Open(postgres.Open(url), &gorm.Config{PrepareStmt: true, SkipDefaultTransaction: true})
	if err != nil {
		b.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		b.Fatal(err)
	}
	pool.SetMaxOpenConns(20)
	pool.SetMaxIdleConns(20)
	b.Cleanup(func() { _ = pool.Close() })
	if err := db.AutoMigrate(&plainAgent{}, &plainSession{}, &plainEntry{}); err != nil {
		b.Fatal(err)
	}
	for i := range int64(32) {
		if err := db.Create(&plainAgent{agentNo(i), 1 << 50}).Error; err != nil {
			b.Fatal(err)
		}
	}
	var n atomic.Int64
	callers(b, func() error {
		i := n.Add(1)
		s := plainSession{ID: sessionID(i), AgentID: agentNo(i), Type: "dynamic", Status: "active", ProxyURL: "http://proxy"}
		return db.Transaction(func(tx *gorm.DB) error {
			debit := tx.Model(&plainAgent{}).Where("id = ? AND balance >= ?", s.AgentID, 400_000).
				Update("balance", gorm.Expr("balance - ?", 400_000))
			if debit.Error != nil {
				return debit.Error
			}
			if err := tx.Create(&s).Error; err != nil {
				return err
			}
			return tx.Create(&plainEntry{AgentID: s.AgentID, SessionID: s.ID, Amount: -400_000}).Error
		})
	})
}
