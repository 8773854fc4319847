package storage_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// unsafe are settings under which units would read stale rows or lose commits that were reported.
var unsafe = map[string]string{"default_transaction_isolation": "repeatable read", "synchronous_commit": "off"}

// Units run at READ COMMITTED with synchronous commits, whatever the database, the role or the URL
// has for a default.
func TestTheSettingsThatUnitsDependOnArePinned(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(t *testing.T, conn *pgx.Conn, base string) string{
		"database": func(t *testing.T, conn *pgx.Conn, base string) string {
			alter(t, conn, "ALTER DATABASE "+conn.Config().Database)
			return base
		},
		"role": func(t *testing.T, conn *pgx.Conn, base string) string {
			alter(t, conn, "ALTER ROLE CURRENT_USER IN DATABASE "+conn.Config().Database)
			return base
		},
		"URL": func(_ *testing.T, _ *pgx.Conn, base string) string {
			query := url.Values{}
			for setting, value := range unsafe {
				query.Set(setting, value)
			}
			return base + "&" + strings.ReplaceAll(query.Encode(), "+", "%20")
		},
		"options of the URL": func(_ *testing.T, _ *pgx.Conn, base string) string {
			return base + "&options=" + strings.ReplaceAll(url.QueryEscape("-c synchronous_commit=off "+
				`-c default_transaction_isolation=repeatable\ read`), "+", "%20")
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := pg.Empty(t)
			if !strings.Contains(base, "?") {
				base += "?"
			}
			conn, err := pgx.Connect(t.Context(), base)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			st := openURL(t, set(t, conn, base))
			if err := st.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			settingsOfAUnit(t, st)
		})
	}
}

func alter(t *testing.T, conn *pgx.Conn, what string) {
	t.Helper()
	for setting, value := range unsafe {
		if _, err := conn.Exec(t.Context(), what+" SET "+setting+" = '"+value+"'"); err != nil {
			t.Fatal(err)
		}
	}
}

// settingsOfAUnit checks the settings inside a unit and on the pool, which River uses too.
func settingsOfAUnit(t *testing.T, st *storage.Store) {
	t.Helper()
	type row interface{ Scan(into ...any) error }
	check := func(where string, query func(string) row) error {
		var errs []error
		for setting, want := range map[string]string{"transaction_isolation": "read committed",
			"synchronous_commit": "on", "jit": "off"} {
			var got string
			errs = append(errs, query("SHOW "+setting).Scan(&got))
			if got != want {
				t.Errorf("%s is %q %s, want %q", setting, got, where, want)
			}
		}
		return errors.Join(errs...)
	}
	st.SetJobInserter(func(ctx context.Context, tx storage.JobTx, _ []ports.Job, _ time.Time) error {
		return check("in a unit", func(query string) row { return tx.Conn.QueryRowContext(ctx, query) })
	})
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Jobs().Insert(ctx, ports.Job{Kind: "show"}, now)
	})
	err := check("on the pool", func(query string) row { return st.Pool().QueryRow(t.Context(), query) })
	if err != nil {
		t.Fatal(err)
	}
}
