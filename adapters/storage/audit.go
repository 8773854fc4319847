package storage

import (
	"context"
	"fmt"
	"slices"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// rule is one rule of the ledger: a query for the rows that break it, each with
// its name and what is wrong with it. The database walks the rows, so a long
// ledger takes no memory here.
type rule struct {
	name, broken string
}

// rules returns the rules of the ledger and of what it is about.
func (s *Store) rules() []rule {
	guards := sqliteGuards
	if s.postgres != nil {
		guards = postgresGuards
	}
	return slices.Concat(ledgerRules, sessionRules, rechargeRules, orderRules, []rule{{guarded, guards}})
}

// Verify proves the ledger on one snapshot, while others write.
func (s *Store) Verify(ctx context.Context) (faults []ports.Fault, entries int, err error) {
	err = s.database.Audit(ctx, func(conn engine.Conn) error {
		for _, rule := range s.rules() {
			err := conn.Rows(ctx, rule.broken, nil, func(rows engine.Row) error {
				f := ports.Fault{Rule: rule.name}
				err := rows.Scan(&f.Where, &f.Detail)
				faults = append(faults, f)
				return err
			})
			if err != nil {
				return fmt.Errorf("verify that %s: %w", rule.name, err)
			}
		}
		return conn.Row("SELECT COUNT(*) FROM ledger_entries", nil).Scan(&entries)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("verify: %w", err)
	}
	return faults, entries, nil
}
