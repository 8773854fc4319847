package wire

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"agentproxy/adapters/admin/console"
	"agentproxy/adapters/chain"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/cmd/internal/version"
	"agentproxy/domain"
)

// consoleHost returns what the operator's console does with this process.
func consoleHost(s configfile.Settings, st *storage.Store, dev *chain.Devchain) console.Host {
	h := console.Host{Version: version.String(),
		Backup: func(ctx context.Context, name string) (string, error) {
			return backupBeside(ctx, st, s.DatabasePath, name)
		}}
	if dev != nil && !s.Payments.Off {
		h.Send = dev.Send
	}
	return h
}

// besides are parts of the names of files that the service itself reads beside its database.
var besides = []string{".secret", "-wal", "-shm", "-journal", ".reserve", ".admin", ".indexes"}

// backupName refuses a name that is not a backup's alone. A page chooses it, so it has no folder, and it is none
// that this service, or another one in the folder, would read as its secret, its log or a mark of its own.
func backupName(name string) error {
	plain := func(r rune) bool {
		return r != '.' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	stem, isDatabase := strings.CutSuffix(name, ".db")
	switch lower := strings.ToLower(name); {
	case !isDatabase || stem == "" || len(name) > 100 || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, plain):
		return domain.InvalidField("file", "must be a name such as monday.db: at most 100 of A-Z, a-z, 0-9, ., _ and -, and "+
			".db at the end")
	case slices.ContainsFunc(besides, func(part string) bool { return strings.Contains(lower, part) }):
		return domain.InvalidField("file", "must have none of %s: they name files of the service",
			strings.Join(besides, ", "))
	}
	return nil
}

// backupBeside copies a database to a new file in its folder.
func backupBeside(ctx context.Context, st *storage.Store, database, name string) (string, error) {
	if err := backupName(name); err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(database), name)
	err := st.Backup(ctx, path)
	if errors.Is(err, fs.ErrExist) {
		return "", domain.InvalidField("file", "exists; nothing was changed. Choose another name")
	}
	return path, err
}

// consoleJobs shows the console what Jobs has.
type consoleJobs struct{ jobs *Jobs }

func newConsoleJobs(j *Jobs) console.Jobs { return consoleJobs{j} }

// List lists jobs, the newest first.
func (j consoleJobs) List(ctx context.Context, state, kind string, limit int) ([]console.Job, error) {
	found, err := j.jobs.List(ctx, queue.Filter{State: state, Kind: kind, Limit: limit})
	list := make([]console.Job, len(found))
	for i, x := range found {
		list[i] = console.Job{ID: x.ID, Kind: x.Kind, State: x.State, Subject: x.Subject, Error: x.Error,
			Attempt: x.Attempt, MaxAttempts: x.MaxAttempts, ScheduledAt: x.ScheduledAt}
	}
	return list, err
}

// Retry runs a job again.
func (j consoleJobs) Retry(ctx context.Context, id int64) error {
	_, err := j.jobs.Retry(ctx, id)
	return err
}

// Discard removes a job.
func (j consoleJobs) Discard(ctx context.Context, id int64) error {
	_, err := j.jobs.Discard(ctx, id)
	return err
}
