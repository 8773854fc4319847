package pg

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/storage/postgres"
)

// pool holds the migrated databases of this process that no test uses. A test
// takes one, or creates one from the template, and puts it back as it was.
// Resetting a database takes a tenth of the time of creating and dropping it.
type pool struct {
	admin    string // URL of the database postgres
	template string // name of a migrated database that nothing is connected to
	pristine state  // of the template

	mu   sync.Mutex
	free []string
}

// state is what a reset restores, and what it compares to know that it succeeded.
type state struct {
	rows   map[string]string // JSON of the rows of each table that is not empty
	tables string            // names of all tables, as a PostgreSQL array
	next   string            // statements that set the sequences
	schema string            // fingerprint of tables, columns, triggers, functions and constraints
}

// shared is the pool of this process. Its template is created by the first test
// that needs a database, of this process or of another one on the same server.
var shared = sync.OnceValues(func() (*pool, error) {
	admin, err := server()
	if err != nil {
		return nil, err
	}
	p := &pool{admin: admin}
	if p.template, err = template(admin); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	name := newName() // another process may copy the template, which nothing may be connected to then
	if err := execute(ctx, admin, "CREATE DATABASE "+name+" TEMPLATE "+p.template); err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, rename(admin, name))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	p.free = []string{name}
	p.pristine, err = read(ctx, conn)
	return p, err
})

// template returns the name of a database with the present schema, which the first process that needs it creates
// on a server and the others find. The name has a digest of the migrations: a server that TEST_POSTGRES_DSN names
// may have templates of other versions.
func template(admin string) (string, error) {
	name, err := templateName()
	if err != nil {
		return "", err
	}
	ctx := context.Background() // another process may migrate its template meanwhile, on any machine
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil { // until it is closed
		return "", err
	}
	var found bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&found)
	if err != nil || found {
		return name, err
	}
	unfinished := newName()
	if err := migrated(admin, unfinished); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+unfinished+" RENAME TO "+name)
	return name, err
}

// templateLock is the number of the advisory lock under which a template is created.
const templateLock = 3_391_702_845_117_930_266

// templateName returns the name of the template of the migrations of this program and of River.
func templateName() (string, error) {
	digest := sha256.New()
	files, err := new(postgres.Database).Migrations()
	if err != nil {
		return "", err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(digest, "%s %d %s", name, len(text), text)
	}
	river, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return "", err
	}
	for _, version := range river.AllVersions() {
		fmt.Fprintf(digest, "%d %d %s", version.Version, len(version.SQLUp), version.SQLUp)
	}
	return fmt.Sprintf("agentproxy_template_%x", digest.Sum(nil)[:8]), nil
}

// migrated creates a database with the present schema.
func migrated(admin, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := execute(ctx, admin, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return err
	}
	st, err := storage.Open(ctx, storage.Config{URL: storage.URL(patient(rename(admin, name))), MaxConns: 4})
	if err != nil {
		return err
	}
	return errors.Join(st.Migrate(ctx), st.Close())
}

// take returns the URL of a pristine database.
func (p *pool) take(t testing.TB) string {
	t.Helper()
	p.mu.Lock()
	name := ""
	if n := len(p.free); n > 0 {
		name, p.free = p.free[n-1], p.free[:n-1]
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if name == "" {
		name = newName()
		require(t, execute(ctx, p.admin, "CREATE DATABASE "+name+" TEMPLATE "+p.template))
	}
	t.Cleanup(func() {
		if err := p.put(name); err != nil {
			t.Error(err)
		}
	})
	return patient(rename(p.admin, name))
}

// put resets a database for the next test. It gets a new name, so that what the
// test leaves running does not reach it. A test that changed the schema, or a user
// who may not do what a reset takes, costs the database.
func (p *pool) put(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	next := newName()
	err := p.reset(ctx, name)
	if err == nil {
		err = execute(ctx, p.admin, "ALTER DATABASE "+name+" RENAME TO "+next)
	}
	if err != nil {
		return execute(ctx, p.admin, "DROP DATABASE "+name+" WITH (FORCE)")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, next)
	return nil
}

func newName() string { return "test_" + strings.ToLower(rand.Text()[:16]) }

// reset ends the connections to a database and restores the rows and sequences
// of the template.
func (p *pool) reset(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, rename(p.admin, name))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// The role replica disables triggers: those of the ledger refuse TRUNCATE.
	script := `SET session_replication_role = replica;
		SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid();
		DO $$ DECLARE name text; filled text; found bool; BEGIN
			FOR name IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
				IF name <> ALL ('` + p.pristine.tables + `') THEN
					EXECUTE format('DROP TABLE %I CASCADE', name);
					CONTINUE;
				END IF;
				CONTINUE WHEN pg_relation_size(quote_ident(name)::regclass) = 0; -- never had a row
				IF pg_relation_size(quote_ident(name)::regclass) < 65536 THEN
					EXECUTE format('DELETE FROM %I', name); -- TRUNCATE makes a file anew for each index
					CONTINUE;
				END IF;
				EXECUTE format('SELECT EXISTS (SELECT FROM %I)', name) INTO found;
				IF found THEN filled := concat_ws(',', filled, quote_ident(name)); END IF;
			END LOOP;
			IF filled IS NOT NULL THEN EXECUTE 'TRUNCATE ' || filled || ' CASCADE'; END IF;
		END $$;
		` + p.pristine.next
	if _, err := conn.Exec(ctx, script, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	for table, rows := range p.pristine.rows {
		insert := fmt.Sprintf(`INSERT INTO %s SELECT * FROM json_populate_recordset(NULL::%[1]s, $1)`, table)
		if _, err := conn.Exec(ctx, insert, pgx.QueryExecModeExec, rows); err != nil {
			return err
		}
	}
	var now string
	if err := conn.QueryRow(ctx, fingerprint).Scan(&now); err != nil {
		return err
	}
	if now != p.pristine.schema {
		return errors.New("the test changed the schema")
	}
	return nil
}

// fingerprint is a query for what describes a schema. Copies of a database have
// the object identifiers of their template.
const fingerprint = `SELECT md5(concat_ws(';',
	(SELECT string_agg(concat_ws(',', oid, relname, relkind, relnatts, relchecks, relpersistence, reloptions), ';' ORDER BY oid)
		FROM pg_class WHERE relnamespace = 'public'::regnamespace),
	(SELECT string_agg(concat_ws(',', attrelid, attname, atttypid, attnotnull, atthasdef, attisdropped), ';' ORDER BY attrelid, attnum)
		FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'public'::regnamespace),
	(SELECT string_agg(concat_ws(',', oid, tgenabled), ';' ORDER BY oid) FROM pg_trigger),
	(SELECT string_agg(concat_ws(',', oid, md5(prosrc)), ';' ORDER BY oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace),
	(SELECT string_agg(concat_ws(',', oid, convalidated), ';' ORDER BY oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace),
	(SELECT string_agg(setconfig::text, ';') FROM pg_db_role_setting JOIN pg_database ON oid = setdatabase WHERE datname = current_database())))`

// read returns the state of a database.
func read(ctx context.Context, conn *pgx.Conn) (s state, err error) {
	if err := conn.QueryRow(ctx, fingerprint).Scan(&s.schema); err != nil {
		return s, err
	}
	const list = `SELECT array_agg(relname)::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`
	if err := conn.QueryRow(ctx, list).Scan(&s.tables); err != nil {
		return s, err
	}
	const sequences = `SELECT string_agg(format('SELECT setval(%L, %s, %L);',
			sequencename, COALESCE(last_value, start_value), last_value IS NOT NULL), ' ')
		FROM pg_sequences WHERE schemaname = 'public'`
	if err := conn.QueryRow(ctx, sequences).Scan(&s.next); err != nil {
		return s, err
	}
	s.rows = map[string]string{}
	for table := range strings.SplitSeq(strings.Trim(s.tables, "{}"), ",") {
		var rows *string
		if err := conn.QueryRow(ctx, "SELECT json_agg(t)::text FROM "+table+" t").Scan(&rows); err != nil {
			return s, err
		}
		if rows != nil {
			s.rows[table] = *rows
		}
	}
	return s, nil
}
