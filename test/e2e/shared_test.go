package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentproxy/test/freeport"
	"agentproxy/test/pg"
)

// sharedPrograms are those that several tests use, by what they are for, and what is done when all tests have ended.
var sharedPrograms struct {
	mu    sync.Mutex
	byUse map[string]func(t *testing.T) []*service
	ends  []func() error
}

// shared returns a program that other tests use too. A test has accounts of its own in it, and changes nothing that
// other tests see: it neither stops the program nor sets what holds for all accounts.
func shared(t *testing.T, env ...string) *service {
	t.Helper()
	return sharedOn(t, "sqlite", env...)
}

// sharedOn is like shared, on a database: sqlite or postgres.
func sharedOn(t *testing.T, store string, env ...string) *service {
	t.Helper()
	return sharing(t, store, 1, env...)[0]
}

// onEachShared runs a test in a shared program on every database.
func onEachShared(t *testing.T, test func(t *testing.T, s *service), env ...string) {
	t.Parallel()
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) { t.Parallel(); test(t, sharedOn(t, store, env...)) })
	}
}

// sharedReplicas returns two programs on one database that other tests use too.
func sharedReplicas(t *testing.T) [2]*service {
	t.Helper()
	return [2]*service(sharing(t, "postgres", 2))
}

// sharing returns as many programs on one database, which are started by the first test that uses them.
func sharing(t *testing.T, store string, n int, env ...string) []*service {
	t.Helper()
	use := fmt.Sprint(store, n, env)
	sharedPrograms.mu.Lock()
	if sharedPrograms.byUse == nil {
		sharedPrograms.byUse = map[string]func(t *testing.T) []*service{}
	}
	started := sharedPrograms.byUse[use]
	if started == nil {
		var one sync.Mutex // of the first tests starts the programs, or the next one if they did not start
		var list []*service
		started = func(t *testing.T) []*service {
			t.Helper()
			one.Lock()
			defer one.Unlock()
			if list == nil {
				list = startShared(t, store, n, env)
			}
			return list
		}
		sharedPrograms.byUse[use] = started
	}
	sharedPrograms.mu.Unlock()
	var mine []*service
	for _, s := range started(t) {
		own := *s
		own.t = t
		mine = append(mine, &own)
	}
	return mine
}

func startShared(t *testing.T, store string, n int, env []string) (list []*service) {
	t.Helper()
	// No bound for all accounts. Nothing is paid here: a program that looks for payments several times a second
	// takes a twentieth of a processor from the others.
	env = append([]string{"AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", "AGENTPROXY_SESSION_LIMIT=0", "AGENTPROXY_TRIAL_DAILY_TOTAL=0",
		"AGENTPROXY_DEVCHAIN_BLOCK_MS=60000"}, env...)
	if store == "postgres" {
		env = append(env, onPostgres(pg.Database(lasting{t}))...)
	}
	for i := range n {
		dir := filepath.Join(filepath.Dir(program), fmt.Sprint("shared-", freeport.Address(t)))
		ok(t, os.Mkdir(dir, 0o700))
		s := &service{t: t, dir: dir, api: freeport.Address(t), gateway: freeport.Address(t), admin: freeport.Address(t), env: env, others: true}
		s.start()
		list = append(list, s)
		atEnd(func() error {
			if i > 0 {
				return s.end()
			}
			out, err := s.done("verify")
			if err != nil {
				err = fmt.Errorf("verify: %w\n%s", err, out)
			}
			return errors.Join(err, s.end())
		})
	}
	return list
}

// atEnd has a function run when all tests have ended, before those that were given earlier.
func atEnd(fn func() error) {
	sharedPrograms.mu.Lock()
	defer sharedPrograms.mu.Unlock()
	sharedPrograms.ends = append(sharedPrograms.ends, fn)
}

// endShared stops the programs that tests have shared, and returns the exit status of the run.
func endShared() (status int) {
	for _, fn := range slices.Backward(sharedPrograms.ends) {
		if err := fn(); err != nil {
			fmt.Fprintln(os.Stderr, "--- FAIL: a shared program:", err)
			status = 1
		}
	}
	return status
}

// lasting is a test whose clean-up happens when all tests have ended.
type lasting struct{ *testing.T }

func (lasting) Cleanup(fn func()) { atEnd(func() error { fn(); return nil }) }

// Error reports a fault of the clean-up, when the test itself has long ended.
func (lasting) Error(args ...any) { fmt.Fprintln(os.Stderr, strings.TrimSpace(fmt.Sprintln(args...))) }
