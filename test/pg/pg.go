// Package pg gives each test a PostgreSQL database: on a server that the test
// process starts from the binaries of this machine, or on the server that
// TEST_POSTGRES_DSN names.
package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/test/smalldisk"
)

// Database returns the URL of a database with the present schema and no more rows
// than a migration leaves. Any machine may take as long as it needs for what is done on it.
// The database is the test's alone until it ends. Without
// a server the test is skipped, or fails if CI is set.
func Database(t testing.TB) string {
	t.Helper()
	p, err := shared()
	require(t, err)
	return p.take(t)
}

// Empty returns the URL of a database without a schema, which is dropped when the
// test ends. Without a server the test is skipped, or fails if CI is set.
func Empty(t testing.TB) string {
	t.Helper()
	admin, err := server()
	require(t, err)
	name := newName()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	require(t, execute(ctx, admin, "CREATE DATABASE "+name+" TEMPLATE template0"))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := execute(ctx, admin, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return patient(rename(admin, name))
}

// With returns the URL of a database with a parameter, or without it if the value is "".
func With(dsn, name, value string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // connecting reports what is wrong with it
	}
	q := u.Query()
	if q.Set(name, value); value == "" {
		q.Del(name)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// patient returns the URL of a database with bounds that let any machine take as long as it needs. A test that
// is about one of them sets its own.
func patient(dsn string) string {
	dsn = With(dsn, "connect_timeout", "300") // seconds
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		dsn = With(dsn, name, "2h")
	}
	return dsn
}

// server returns the URL of the server of this process.
var server = sync.OnceValues(func() (string, error) {
	if dsn := os.Getenv("TEST_POSTGRES_DSN"); dsn != "" {
		return dsn, nil
	}
	s, err := Run()
	if err != nil {
		return "", err
	}
	return s.URL("postgres"), nil
})

// require ends the test if err is not nil. A missing server skips it, unless CI is
// set.
func require(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, dsn, statement string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement)
	return err
}

// rename returns the URL of another database of the same server.
func rename(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // connecting reports what is wrong with it
	}
	u.Path = "/" + name
	return u.String()
}

// errMissing means that neither a server nor the binaries to start one were found.
var errMissing = errors.New("no PostgreSQL: set TEST_POSTGRES_DSN, or install the server (on Debian: apt-get install postgresql)")

// Server is a PostgreSQL server that a test may stop and start.
type Server struct {
	bin, dir string
	as       *syscall.Credential
}

// Start runs a server for one test alone, and removes it when the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := Run()
	require(t, err)
	t.Cleanup(func() { _ = s.Stop("immediate") })
	return s
}

// URL returns the URL of a database on the server, as its owner.
func (s *Server) URL(database string) string { return address(database, s.dir) }

func address(database, host string) string {
	return "postgres:///" + database + "?host=" + url.QueryEscape(host) + "&user=postgres"
}

// Socket returns the path of the server's Unix socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// Database returns the URL of a new database with the present schema on this server.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := newName()
	require(t, migrated(s.URL("postgres"), name))
	return patient(s.URL(name))
}

// Standby runs a second server that follows this one, until Promote, and removes it when the test ends.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	second, err := place()
	require(t, err)
	t.Cleanup(func() { _ = second.Stop("immediate") })
	require(t, second.tool("pg_basebackup", "-D", second.data(), "-h", s.dir, "-U", "postgres", "-R", "-X", "stream", "-c", "fast", "--no-sync"))
	require(t, second.Begin())
	return second
}

// Promote has a standby take the place of the server that it followed.
func (s *Server) Promote() error {
	return s.tool("pg_ctl", "-D", s.data(), "-w", "-t", "300", "promote")
}

// Either returns the URL of a database on whichever of two servers takes writes.
func (s *Server) Either(second *Server, database string) string {
	return patient(address(database, s.dir+","+second.dir)) + "&target_session_attrs=read-write"
}

// Stop ends the server: fast, as an operator would, or immediate, as a crash.
func (s *Server) Stop(mode string) error {
	return s.tool("pg_ctl", "-D", s.data(), "-m", mode, "-w", "stop")
}

// Freeze stops the processes of the server where they are, as those of a host that hangs: connections are
// accepted, and nothing is answered.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	require(t, s.signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = s.signal(syscall.SIGCONT) })
}

// Thaw ends Freeze.
func (s *Server) Thaw(t testing.TB) {
	t.Helper()
	require(t, s.signal(syscall.SIGCONT))
}

// signal sends a signal to the server and the processes that it started.
func (s *Server) signal(signal syscall.Signal) error {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	server, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", server, server))
	if err != nil {
		return err
	}
	fault := syscall.Kill(server, signal) // before it can start another
	for child := range strings.FieldsSeq(string(children)) {
		if id, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(id, signal) // it may have ended
		}
	}
	return fault
}

// Execute runs statements on a database of the server that is there from the start.
func (s *Server) Execute(t testing.TB, statement string) {
	t.Helper()
	require(t, execute(t.Context(), s.URL("postgres"), statement))
}

// Restart stops the server so and starts it again.
func (s *Server) Restart(mode string) error {
	if err := s.Stop(mode); err != nil {
		return err
	}
	return s.Begin()
}

// Begin starts the server again.
func (s *Server) Begin() error {
	// Without fsync nothing waits for a disk. Commits stay synchronous: they survive
	// the crash of the server, though not that of the machine.
	options := "-c listen_addresses= -c max_connections=400 -c fsync=off -c full_page_writes=off -k " + s.dir
	return s.tool("pg_ctl", "-D", s.data(), "-l", filepath.Join(s.dir, "log"), "-w", "-t", "300", "-o", options, "start")
}

// Folder returns the folder of the server, in which all of its files are.
func (s *Server) Folder() string { return s.dir }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Run starts a server in a folder of its own, which is removed when the process has ended.
func Run() (*Server, error) {
	s, err := place()
	if err != nil {
		return nil, err
	}
	return s, s.create()
}

// StartSmall is Start on a file system of its own of a size in bytes, with at most about 64 MB of the log of writes.
func StartSmall(t testing.TB, size int) *Server {
	t.Helper()
	s, err := place()
	require(t, err)
	smalldisk.On(t, s.dir, size)
	require(t, s.lower())
	require(t, s.create("max_wal_size = 64MB", "min_wal_size = 32MB"))
	t.Cleanup(func() { _ = s.Stop("immediate") })
	return s
}

// create makes the files of a server, with further lines of its configuration, and starts it.
func (s *Server) create(config ...string) error {
	made, err := initialized()
	if err == nil {
		err = s.run("cp", "-R", made.data(), s.data())
	}
	if err != nil {
		return err
	}
	// One user needs a password, for tests of a wrong one.
	hba := filepath.Join(s.data(), "pg_hba.conf")
	rules, err := os.ReadFile(hba)
	if err == nil {
		err = os.WriteFile(hba, append([]byte("local all locked scram-sha-256\n"), rules...), 0o600)
	}
	if err == nil && len(config) > 0 {
		err = os.WriteFile(filepath.Join(s.data(), "postgresql.auto.conf"), []byte(strings.Join(config, "\n")+"\n"), 0o600)
	}
	if err != nil {
		return err
	}
	return s.Begin()
}

// initialized returns a server that never runs, whose files the others of this process copy: initdb takes ten times as long.
var initialized = sync.OnceValues(func() (*Server, error) {
	s, err := place()
	if err != nil {
		return nil, err
	}
	return s, s.tool("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8")
})

// place returns a server that has a folder and no data yet.
func place() (s *Server, err error) {
	s = &Server{}
	if s.bin, err = binaries(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp(memory(), "agentproxy-pg-"); err != nil {
		return nil, err
	}
	if err = s.lower(); err == nil {
		err = s.guard()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

// memory returns a folder in memory that has room for the databases of a run of all tests, or ""
// for the usual temporary folder. Tests create and remove tables all the time: on a disk its file system takes a third of
// what the server computes, though nothing waits for the disk.
func memory() string {
	const folder, room = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < room {
		return ""
	}
	return folder
}

// lower finds a user who may run a server, which root may not, and gives it the
// folder.
func (s *Server) lower() error {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return err
		}
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(s.dir, int(uid), int(gid))
	}
	return errors.New("root may not run PostgreSQL, and there is no user that may")
}

// guard leaves a shell behind that ends the server and removes its folder when
// this process is gone, however it went: the shell waits for the end of a pipe
// that only this process holds. (Pdeathsig would fire when a thread ends.)
func (s *Server) guard() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	// A server that a test has frozen cannot stop.
	cmd := exec.Command("/bin/sh", "-c", `read never; p=$(head -n 1 "$2/data/postmaster.pid")
		kill -CONT "$p" $(cat "/proc/$p/task/$p/children") 2>/dev/null; "$1/pg_ctl" -D "$2/data" -m immediate stop >/dev/null 2>&1; rm -rf "$2"`, "sh", s.bin, s.dir)
	cmd.Stdin, cmd.Dir = r, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.as}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return err
	}
	held.Lock()
	defer held.Unlock()
	held.pipes = append(held.pipes, w)
	go func() { _ = cmd.Wait() }()
	return nil
}

// held are the pipes, for as long as the process lives.
var held struct {
	sync.Mutex
	pipes []io.Closer
}

// tool runs a program of PostgreSQL.
func (s *Server) tool(name string, args ...string) error {
	return s.run(filepath.Join(s.bin, name), args...)
}

// run runs a program in the folder of the server and as its user.
func (s *Server) run(name string, args ...string) error {
	out, err := os.CreateTemp("", "agentproxy-pg-out-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out // a file: the server keeps them open
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, text)
	}
	return nil
}

// binaries returns the folder of the newest server, or errMissing.
func binaries() (string, error) {
	var found []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // the other programs are beside it
			found = append(found, filepath.Dir(path))
		}
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for i := len(debian) - 1; i >= 0; i-- {
		found = append(found, debian[i])
	}
	for _, dir := range found {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "pg_ctl")); err == nil {
			return dir, nil
		}
	}
	return "", errMissing
}
