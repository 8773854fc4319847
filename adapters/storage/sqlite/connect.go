package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"os"

	"github.com/mattn/go-sqlite3"
)

// common are the parameters of both kinds of connection. The driver keeps statements prepared;
// database/sql uses a connection from one goroutine at a time, so SQLite needs no lock of its own.
var common = url.Values{
	"_busy_timeout":    {"10000"},
	"_foreign_keys":    {"on"},
	"_stmt_cache_size": {"128"},
	"_mutex":           {"no"},
}

// writing makes what was committed survive a power failure (FULL), takes the write lock when a
// transaction begins, because a lock that is requested after a read is refused at once, and lets
// the triggers of the ledger see rows that a REPLACE would remove. What its cache lacks is in that of the system: one
// of 12 or 64 MB measured no faster.
var writing = url.Values{
	"_journal_mode":       {"WAL"},
	"_synchronous":        {"FULL"},
	"_txlock":             {"immediate"},
	"_recursive_triggers": {"on"},
	"_cache_size":         {"-6144"}, // KiB
}

// reading prevents writes. What the small cache of each lacks is in that of the system.
var reading = url.Values{
	"_query_only": {"true"},
	"_cache_size": {"-512"}, // KiB
}

// The pragmas for which the driver has no parameter. The pages that savepoints keep stay in memory:
// past 64 KiB they would go to a file, at two system calls each.
const (
	writerPragmas = "PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864"
	readerPragmas = unmapFile
)

// The pages that a snapshot reads come from the mapped file if it is audited: of many that are read again and again,
// such as those of a join, each takes half as long. SQLite ends the mapping when the file has changed since the
// last snapshot, which costs a short one more than to read its pages.
const (
	mapFile   = "PRAGMA mmap_size = 2147418112" // as much as SQLite is built to allow
	unmapFile = "PRAGMA mmap_size = 0"
)

// connector opens connections to one file and sets their pragmas.
type connector struct {
	driver sqlite3.SQLiteDriver
	dsn    string
}

func newConnector(pragmas, path string, kinds ...url.Values) *connector {
	params := url.Values{}
	for _, kind := range kinds {
		for key, value := range kind {
			params[key] = value
		}
	}
	file := url.URL{Path: path}
	return &connector{
		dsn: "file:" + file.EscapedPath() + "?" + params.Encode(),
		driver: sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
			_, err := c.Exec(pragmas, nil)
			return err
		}},
	}
}

func (c *connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c *connector) Driver() driver.Driver                        { return &c.driver }

// openWriter creates the file if it does not exist, readable for its owner alone; SQLite gives the
// files beside it the same mode.
func openWriter(ctx context.Context, path string) (*sql.DB, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	closeToOthers(path)
	db := sql.OpenDB(newConnector(writerPragmas, path, common, writing))
	// The one connection is never closed for its age or for being idle.
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// closeToOthers takes the rights of others from an existing file and those beside it, which SQLite
// makes with its mode: they hold all data of the service. One that belongs to another
// user stays as it is.
func closeToOthers(path string) {
	for _, end := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(path + end); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 {
			_ = os.Chmod(path+end, 0o600)
		}
	}
}

func openReader(ctx context.Context, path string, connections int) (*sql.DB, error) {
	db := sql.OpenDB(newConnector(readerPragmas, path, common, reading))
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
