package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/app/payments"
)

type restoreCmd struct {
	noted
	File string `arg:"" optional:"" name:"FILE" help:"The copy that agentproxy backup wrote (SQLite). Without it nothing is copied: for a database that you have restored yourself, and for PostgreSQL after a restore or a failover."`
}

// afterRestore is what is left to do.
const afterRestore = "start the service; agentproxy recharge rescan --from the day before the copy was made credits " +
	"what was paid since to addresses that it has; agentproxy orders reconcile compares orders with the sellers"

// Run puts a backup in the place of the database, leaves out the indexes of payment addresses that may have been given
// out since, and has events go on behind the cursors that agents were given.
func (c restoreCmd) Run(k *kit) error {
	settings, err := k.loader.Load()
	if err != nil {
		return err
	}
	var aside string
	if c.File != "" {
		if settings.DatabasePath == "" {
			return errors.New("a file restores SQLite; restore PostgreSQL with its own tools, then run agentproxy restore " +
				"without one")
		}
		if aside, err = replaceDatabase(k.ctx, settings.DatabasePath, c.File, time.Now()); err != nil {
			return err
		}
	}
	var orders *payments.Orders
	var store *storage.Store
	action := c.action("restore", "")
	action.Details = "file=" + c.File
	err = k.do(action, func(ctx context.Context) error {
		from, next, err := orders.Indexes.Restored(ctx)
		if err == nil {
			err = store.RaiseFeed(ctx)
		}
		if err != nil {
			return err
		}
		return k.record("database", settings.DatabasePath, "before", aside, "indexes_left_out_from", from, "next_index", next,
			"next", afterRestore)
	}, &orders, &store)
	if errors.Is(err, storage.ErrOlderSchema) {
		err = fmt.Errorf("%w; then run agentproxy restore again, without a file", err)
	}
	return err
}

// replaceDatabase puts a copy in the place of a database that no process has open, and keeps that database beside it.
// It returns the new name of that, "" if there was none.
func replaceDatabase(ctx context.Context, path, file string, now time.Time) (aside string, err error) {
	if err := storage.CheckCopy(ctx, file); err != nil {
		return "", err
	}
	fresh := path + ".restoring"
	if err := copyFile(file, fresh); err != nil {
		return "", err
	}
	defer os.Remove(fresh)
	_, err = os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	default:
		// Which also moves what is left in the files beside it into the database.
		if err := storage.CheckIdle(ctx, path); err != nil {
			return "", err
		}
		aside = path + ".before-" + now.UTC().Format("20060102T150405")
		if err := os.Rename(path, aside); err != nil {
			return "", err
		}
	}
	for _, end := range []string{"-wal", "-shm"} { // of a database that was removed by hand
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aside, err
		}
	}
	return aside, os.Rename(fresh, path)
}

// copyFile copies a database to a new file that its owner alone can read.
func copyFile(from, to string) error {
	data, err := os.Open(from)
	if err != nil {
		return err
	}
	defer data.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.ReadFrom(data)
	return errors.Join(err, f.Sync(), f.Close())
}
