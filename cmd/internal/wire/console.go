package wire

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os/user"
	"path/filepath"
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
	h := console.Host{User: systemUser(), Version: version.String(),
		Backup: func(ctx context.Context, name string) (string, error) {
			return backupBeside(ctx, st, s.DatabasePath, name)
		}}
	if dev != nil && !s.Payments.Off {
		h.Send = dev.Send
	}
	return h
}

// backupBeside copies a database to a new file in its folder. A page chooses the name of the file and no
// folder, so that a client of the admin listener cannot write elsewhere.
func backupBeside(ctx context.Context, st *storage.Store, database, name string) (string, error) {
	if name == "" || len(name) > 100 || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\\x00") {
		return "", domain.InvalidField("file", "must be a name of at most 100 characters without a folder")
	}
	path := filepath.Join(filepath.Dir(database), name)
	err := st.Backup(ctx, path)
	if errors.Is(err, fs.ErrExist) {
		return "", domain.InvalidField("file", "exists; nothing was changed. Choose another name")
	}
	return path, err
}

// systemUser returns the user that runs the service, who acts unless a form names another one.
func systemUser() string {
	u, err := user.Current()
	if err != nil {
		return "operator"
	}
	return cmp.Or(u.Username, "operator")
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
