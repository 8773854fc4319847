package storage

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/procurement"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// rootCheck is the name under which the check value of the root secret is kept.
const rootCheck = "root-check"

// ErrOtherSecret is returned for a database that was used with another root secret.
var ErrOtherSecret = errors.New("AGENTPROXY_SECRET is not the one that this database was used with, " +
	"so every key, token, proxy password and webhook secret would be wrong; set the secret of the first start, " +
	"or, if you have replaced it, list the old one in AGENTPROXY_SECRET_PREVIOUS")

// replacedRoot begins the name under which it is kept when a root secret was replaced, in microseconds; its
// check value in hexadecimal follows.
const replacedRoot = rootCheck + "/"

// MissingRootError is returned while something depends on a root secret that was replaced and is not given.
type MissingRootError struct {
	Keys   int // API keys that were issued under it
	Sealed int // deliveries of sellers that are sealed under it
}

// Error names how much depends on it and what to do.
func (e MissingRootError) Error() string {
	return fmt.Sprintf("%d API keys and %d deliveries of sellers depend on a root secret that AGENTPROXY_SECRET replaced "+
		"and that is not listed in AGENTPROXY_SECRET_PREVIOUS: list it; agentproxy secret rotate seals the deliveries "+
		"anew, and agentproxy secret drop, run while it is listed, lets the rest end", e.Keys, e.Sealed)
}

// CheckRoot compares the check values of the root secrets, the current one first, with the one that
// the database keeps, and keeps the current one if the database has none yet or that of a previous
// one, with the time. It returns ErrOtherSecret if it has one of none of them, and MissingRootError if
// something depends on one that was replaced and is not given.
func (s *Store) CheckRoot(ctx context.Context, checks [][]byte) error {
	current := false
	err := s.View(ctx, ports.ReadSet{}, func(ctx context.Context, unit ports.Tx) error {
		t := unit.(*tx)
		var kept []byte
		err := t.Row("SELECT value FROM service_values WHERE name = ?1", rootCheck).Scan(&kept)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if current = bytes.Equal(kept, checks[0]); current && err == nil {
			err = t.missingRoot(ctx, checks)
		}
		return err
	})
	if err != nil || current {
		return err // on a standby too, which only reads
	}
	return s.Update(ctx, ports.ReadSet{}, func(ctx context.Context, unit ports.Tx) error {
		t := unit.(*tx)
		t.Serialize(rootCheck)
		var kept []byte
		err := t.Row("SELECT value FROM service_values WHERE name = ?1", rootCheck).Scan(&kept)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return fmt.Errorf("read the check value of the root secret: %w", err)
		case bytes.Equal(kept, checks[0]):
			return t.missingRoot(ctx, checks)
		case !contains(checks, kept):
			return ErrOtherSecret
		}
		if err := t.missingRoot(ctx, checks); err != nil {
			return err
		}
		if len(kept) > 0 {
			at := strconv.FormatInt(s.clock.Now().UnixMicro(), 10)
			err := t.Later("keep when the root secret was replaced", work.SetServiceValue, nameOfRoot(kept), []byte(at))
			if err != nil {
				return err
			}
		}
		if err := t.Later("the root secret is the current one again", "DELETE FROM service_values WHERE name = ?1",
			nameOfRoot(checks[0])); err != nil {
			return err
		}
		return t.Later("write the check value of the root secret", work.SetServiceValue, rootCheck, checks[0])
	})
}

func nameOfRoot(check []byte) string { return replacedRoot + hex.EncodeToString(check) }

// missingRoot returns MissingRootError if something was made under a root secret that was replaced and is
// not given. A key depends on the one that was current when it was issued.
func (t *tx) missingRoot(ctx context.Context, checks [][]byte) error {
	var last int64 // when the missing one that was replaced last was
	given := map[string]bool{}
	for _, c := range checks {
		given[nameOfRoot(c)] = true
	}
	var sealedAt int64
	const query = "SELECT name, value FROM service_values WHERE name >= ?1 AND name < ?2 OR name = ?3"
	err := t.Rows(ctx, query, []any{replacedRoot, rootCheck + "0", procurement.Resealed}, func(row engine.Row) error {
		var name string
		var value []byte
		if err := row.Scan(&name, &value); err != nil {
			return err
		}
		at, err := strconv.ParseInt(string(value), 10, 64)
		switch {
		case err != nil:
			return fmt.Errorf("the value of %s is not a time: %w", name, err)
		case name == procurement.Resealed:
			sealedAt = at
		case !given[name]:
			last = max(last, at)
		}
		return nil
	})
	if err != nil || last == 0 {
		return work.Wrap("list replaced root secrets", err)
	}
	var e MissingRootError
	const dependent = `SELECT
		(SELECT COUNT(*) FROM agents WHERE COALESCE(NULLIF(key_created_at, 0), created_at) <= ?1)
		+ (SELECT COUNT(*) FROM api_keys WHERE created_at <= ?1),
		(SELECT COUNT(*) FROM upstream_orders WHERE decided_at <= ?1 AND ?2 < ?1 AND closed_at = 0 AND length(goods) > 0)`
	if err := t.Row(dependent, last, sealedAt).Scan(&e.Keys, &e.Sealed); err != nil {
		return fmt.Errorf("count what depends on a replaced root secret: %w", err)
	}
	if e.Keys+e.Sealed > 0 {
		return e
	}
	return nil
}

// DropRoots makes nothing depend on replaced root secrets from now on, and returns how much of what was made
// under them ends when they are not listed any more.
func (s *Store) DropRoots(ctx context.Context, current []byte) (dropped MissingRootError, err error) {
	err = s.Update(ctx, ports.ReadSet{}, func(ctx context.Context, unit ports.Tx) error {
		t := unit.(*tx)
		t.Serialize(rootCheck)
		dropped = MissingRootError{}
		if err := t.missingRoot(ctx, [][]byte{current}); err != nil && !errors.As(err, &dropped) {
			return err
		}
		return t.Later("drop the replaced root secrets", "DELETE FROM service_values WHERE name >= ?1 AND name < ?2",
			replacedRoot, rootCheck+"0")
	})
	return dropped, err
}

// HasRoot reports whether the database keeps one of the check values.
func (s *Store) HasRoot(ctx context.Context, checks [][]byte) (kept bool, err error) {
	err = s.View(ctx, ports.ReadSet{}, func(ctx context.Context, unit ports.Tx) error {
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
	err = s.View(ctx, ports.ReadSet{}, func(ctx context.Context, unit ports.Tx) error {
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
	return s.Update(ctx, ports.ReadSet{}, func(ctx context.Context, unit ports.Tx) error {
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
