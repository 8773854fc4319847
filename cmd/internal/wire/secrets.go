package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
)

// SecretFiles returns the files beside a SQLite database that hold the root
// secret and those that it replaced.
func SecretFiles(database string) (current, previous string) {
	return database + ".secret", database + ".secret.previous"
}

// IndexFile returns the file beside a SQLite database that keeps which indexes of payment addresses were given out.
func IndexFile(database string) string { return database + ".indexes" }

// rootSecrets returns the configured root secrets, or those beside the SQLite
// file.
func rootSecrets(s configfile.Settings, st *storage.Store) (r system.Roots, err error) {
	for _, text := range s.PreviousSecrets {
		root, err := system.ParseRoot(string(text))
		if err != nil {
			return r, err
		}
		r.Previous = append(r.Previous, root)
	}
	current, previous := SecretFiles(s.DatabasePath)
	if s.DatabasePath != "" {
		list, err := system.LoadSecrets(previous)
		if err != nil {
			return r, err
		}
		r.Previous = append(r.Previous, list...)
	}
	if s.RootSecret != "" {
		r.Current, err = system.ParseRoot(string(s.RootSecret))
		return r, err
	}
	r.Current, err = system.LoadSecret(current)
	if errors.Is(err, fs.ErrNotExist) {
		r.Current, err = createSecret(st, current, r.Previous)
	}
	return r, err
}

// createSecret creates the root secret of a new database, or one that replaces
// the previous ones. Without these a database that has agents is useless with a
// new secret.
func createSecret(st *storage.Store, file string, previous []system.Root) (system.Root, error) {
	ctx := context.Background()
	used, err := st.HasAgents(ctx)
	if err != nil {
		return nil, err
	}
	if !used {
		if err := st.ForgetRoot(ctx); err != nil {
			return nil, err
		}
		return system.LoadOrCreateSecret(file)
	}
	replaces := false
	if len(previous) > 0 {
		older, err := system.NewSecrets(previous[0], previous[1:]...)
		if err != nil {
			return nil, err
		}
		if replaces, err = st.HasRoot(ctx, older.Checks()); err != nil {
			return nil, err
		}
	}
	if !replaces {
		return nil, fmt.Errorf("the root secret %s is missing, and the database has agents whose keys and passwords "+
			"depend on it; "+
			"restore the file from a backup, or set AGENTPROXY_SECRET to its text", file)
	}
	return system.LoadOrCreateSecret(file)
}

// checkRoot refuses a root secret that the database was not used with.
func checkRoot(st *storage.Store, secrets *system.Secrets) error {
	return st.CheckRoot(context.Background(), secrets.Checks())
}
