package storage

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"agentproxy/ports"
)

// rootCheck is the name under which the check value of the root secret is kept.
const rootCheck = "root-check"

// ErrOtherSecret is returned for a database that was used with another root secret.
var ErrOtherSecret = errors.New("AGENTPROXY_SECRET is not the one that this database was used with, " +
	"so every key, token, proxy password and webhook secret would be wrong; set the secret of the first start, " +
	"or, if you have replaced it, list the old one in AGENTPROXY_SECRET_PREVIOUS")

// CheckRoot compares the check values of the root secrets, the current one first, with the one that
// the database keeps, and keeps the current one if the database has none yet or that of a previous
// one. It returns ErrOtherSecret if it has one of none of them.
func (s *Store) CheckRoot(ctx context.Context, checks [][]byte) error {
	return s.Update(ctx, func(ctx context.Context, unit ports.Tx) error {
		t := unit.(*tx)
		t.Serialize(rootCheck)
		var kept []byte
		err := t.Row("SELECT value FROM service_values WHERE name = ?1", rootCheck).Scan(&kept)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return fmt.Errorf("read the check value of the root secret: %w", err)
		case bytes.Equal(kept, checks[0]):
			return nil
		case !contains(checks, kept):
			return ErrOtherSecret
		}
		return t.Later("write the check value of the root secret",
			`INSERT INTO service_values (name, value) VALUES (?1, ?2)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, rootCheck, checks[0])
	})
}

// HasRoot reports whether the database keeps one of the check values.
func (s *Store) HasRoot(ctx context.Context, checks [][]byte) (kept bool, err error) {
	err = s.View(ctx, func(ctx context.Context, unit ports.Tx) error {
		var value []byte
		err := unit.(*tx).Row("SELECT value FROM service_values WHERE name = ?1", rootCheck).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		kept = contains(checks, value)
		return err
	})
	return kept, err
}

// HasAgents reports whether an agent has ever registered.
func (s *Store) HasAgents(ctx context.Context) (has bool, err error) {
	err = s.View(ctx, func(ctx context.Context, unit ports.Tx) error {
		var n int64
		err := unit.(*tx).Row("SELECT COUNT(*) FROM (SELECT 1 FROM agents LIMIT 1) AS found").Scan(&n)
		has = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for agents: %w", err)
	}
	return has, nil
}

// ForgetRoot removes the check value of the root secret, for a database whose secret is lost while
// nothing depends on it.
func (s *Store) ForgetRoot(ctx context.Context) error {
	return s.Update(ctx, func(ctx context.Context, unit ports.Tx) error {
		return unit.(*tx).Later("forget the root secret", "DELETE FROM service_values WHERE name = ?1", rootCheck)
	})
}

func contains(list [][]byte, b []byte) bool {
	for _, other := range list {
		if bytes.Equal(other, b) {
			return true
		}
	}
	return false
}
