package storage_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/test/pg"
)

// bouncer runs Debian's PgBouncer in a mode before a server, with its other settings as they are by default but for the
// size of the pool, and returns the URL of a database through it.
func bouncer(t *testing.T, server *pg.Server, database, mode string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no PgBouncer: on Debian apt-get install pgbouncer")
		}
		t.Skip("no PgBouncer: on Debian apt-get install pgbouncer")
	}
	dir, err := os.MkdirTemp("", "bouncer") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := fmt.Sprintf("[databases]\n* = host=%s user=postgres\n[pgbouncer]\nauth_type = any\nlisten_addr =\nunix_socket_dir = %s\n"+
		"pool_mode = %s\ndefault_pool_size = 40\nlogfile = %s/log\n", server.Folder(), dir, mode, dir)
	file := filepath.Join(dir, "ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, file)
	if os.Getuid() == 0 { // it refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		id, _ := strconv.Atoi(u.Uid)
		if err := os.Chown(dir, id, -1); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	eventually(t, "PgBouncer listens", func() bool {
		c, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.6432")) // the file is there before it listens
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "postgres:///" + database + "?host=" + dir + "&port=6432&user=postgres"
}

// PgBouncer takes few settings at the start of a connection. In session mode all of them are in effect.
func TestPgBouncerInSessionMode(t *testing.T) {
	t.Parallel()
	server := pg.Start(t)
	url := server.Database(t)
	st := openURL(t, bouncer(t, server, nameOf(t, url), "session"))
	addAgent(t, st, "agt_1", domain.Dollar)
	for name, use := range users(st) {
		if err := use(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{"statement_timeout": "5s", "lock_timeout": "2s",
		"idle_in_transaction_session_timeout": "10s", "jit": "off", "synchronous_commit": "on"} {
		var got string
		if err := st.Pool().QueryRow(t.Context(), "SHOW "+name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	if entries := verify(t, st); entries != 1 {
		t.Errorf("%d entries, want that of the deposit", entries)
	}
}

// In the other modes clients share sessions: it is refused.
func TestPgBouncerInOtherModesIsRefused(t *testing.T) {
	t.Parallel()
	server := pg.Start(t)
	url := server.Database(t)
	for _, mode := range []string{"transaction", "statement"} {
		st, err := storage.Open(context.Background(), storage.Config{URL: storage.URL(bouncer(t, server, nameOf(t, url), mode))})
		if err == nil {
			_ = st.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "pool_mode = session") {
			t.Errorf("pool_mode = %s: %v", mode, err)
		}
	}
}
