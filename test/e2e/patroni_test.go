//go:build campaign

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentproxy/test/freeport"
)

// patroniConfig is that of one of two nodes. The ttl is the least that Patroni takes.
const patroniConfig = `scope: agentproxy
name: %[1]s
restapi: {listen: '%[2]s', connect_address: '%[2]s'}
etcd3: {hosts: '%[3]s'}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    synchronous_mode: true
    postgresql: {use_pg_rewind: true, parameters: {max_connections: 100}}
  initdb: [{auth-host: trust}, {auth-local: trust}, encoding: UTF8]
postgresql:
  listen: '%[4]s'
  connect_address: '%[4]s'
  data_dir: %[5]s/data
  bin_dir: %[6]s
  pgpass: %[5]s/pgpass
  pg_hba: [local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
  authentication: {superuser: {username: postgres, password: unused}, replication: {username: replicator, password: unused}}
  parameters: {unix_socket_directories: %[5]s, fsync: 'off'}
`

// node is one of Patroni's, with the server that it runs.
type node struct {
	name, api, address, dir string
	cmd                     *exec.Cmd
}

// TestPatroniFailsOver has Patroni with etcd decide who is the primary: a switchover that is planned, and a node
// that is lost. Nothing that was answered is lost, and no lease.
func TestPatroniFailsOver(t *testing.T) {
	if _, err := exec.LookPath("patroni"); err != nil {
		t.Skip("no Patroni: on Debian apt-get install patroni etcd-server")
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("no etcd: on Debian apt-get install etcd-server")
	}
	nodes := startPatroni(t)
	hosts := nodes[0].address + "," + nodes[1].address
	env := append(onPostgres("postgres://postgres@"+hosts+"/postgres?target_session_attrs=read-write&sslmode=disable"),
		"AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", "AGENTPROXY_TRIAL_BALANCE=100000", "AGENTPROXY_TRIAL_DAILY_TOTAL=0",
		"AGENTPROXY_SESSION_LIMIT=0")
	both := [2]*service{serve(t, env...), serve(t, env...)}
	for _, event := range []struct {
		name string
		do   func(leader, other *node)
	}{
		{"a planned switchover", func(leader, other *node) {
			body := fmt.Sprintf(`{"leader":%q,"candidate":%q}`, leader.name, other.name)
			resp, err := http.Post("http://"+leader.api+"/switchover", "application/json", strings.NewReader(body))
			ok(t, err)
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("switchover: %d %s", resp.StatusCode, text)
			}
		}},
		{"a lost node", func(leader, _ *node) { leader.lose(t) }},
	} {
		leader, other := leaderOf(t, nodes)
		within(t, soon, "the standby is synchronous", func() bool { return other.is("sync_standby") })
		c := newClients(t, both)
		c.run()
		c.succeeds("before", 3)
		c.lost()
		event.do(leader, other)
		c.relays("without a primary")
		within(t, soon, "the other node leads", func() bool { return other.is("leader") || other.is("primary") || other.is("master") })
		took := time.Since(c.began)
		c.succeeds("after", 10)
		c.stop()
		t.Logf("%s: promoted after %.1f s; the longest gaps in seconds: %s", event.name, took.Seconds(), c.seconds(c.gap))
		c.check(failover{sync: true})
	}
}

// startPatroni starts etcd and two nodes, and waits until one follows the other.
func startPatroni(t *testing.T) (nodes []*node) {
	t.Helper()
	servers, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(servers) == 0 {
		t.Skip("no PostgreSQL")
	}
	dir, err := os.MkdirTemp("", "agentproxy-patroni-")
	ok(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ok(t, os.Chmod(dir, 0o755))
	etcd, peer := freeport.Address(t), freeport.Address(t)
	background(t, nil, filepath.Join(dir, "etcd.log"), "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", "http://"+etcd,
		"--advertise-client-urls", "http://"+etcd, "--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "default=http://"+peer)
	as := postgresUser(t)
	for _, name := range []string{"one", "two"} {
		n := &node{name: name, api: freeport.Address(t), address: freeport.Address(t), dir: filepath.Join(dir, name)}
		ok(t, os.Mkdir(n.dir, 0o700))
		file := filepath.Join(n.dir, "patroni.yml")
		ok(t, os.WriteFile(file, fmt.Appendf(nil, patroniConfig, n.name, n.api, etcd, n.address, n.dir, servers[len(servers)-1]), 0o600))
		if as != nil {
			ok(t, os.Chown(n.dir, int(as.Uid), int(as.Gid)))
			ok(t, os.Chown(file, int(as.Uid), int(as.Gid)))
		}
		n.cmd = background(t, as, filepath.Join(dir, name+".log"), "patroni", file)
		t.Cleanup(func() { n.lose(t) })
		nodes = append(nodes, n)
		if name == "one" {
			within(t, soon, "the first node leads", func() bool { return n.is("leader") || n.is("primary") || n.is("master") })
		}
	}
	within(t, soon, "the second node follows", func() bool { return nodes[1].is("sync_standby") })
	return nodes
}

// postgresUser returns who runs the servers, which root may not; nil for who runs the test.
func postgresUser(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	ok(t, err)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	ok(t, err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	ok(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// background runs a program until the test ends. What it prints is shown if the test fails.
func background(t *testing.T, as *syscall.Credential, log, name string, args ...string) *exec.Cmd {
	t.Helper()
	out, err := os.Create(log)
	ok(t, err)
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Setpgid: true}
	ok(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		_ = out.Close()
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("%s:\n%s", name, bytes.TrimSpace(text[max(0, len(text)-4000):]))
		}
	})
	return cmd
}

// lose ends a node as the loss of its host does: Patroni, and its server.
func (n *node) lose(t *testing.T) {
	t.Helper()
	_ = syscall.Kill(-n.cmd.Process.Pid, syscall.SIGKILL)
	text, err := os.ReadFile(filepath.Join(n.dir, "data", "postmaster.pid"))
	if err != nil {
		return
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if pid, err := strconv.Atoi(first); err == nil && pid > 1 {
		_ = syscall.Kill(pid, syscall.SIGQUIT)
	}
}

// is reports whether a node has a role, as Patroni's API has it.
func (n *node) is(role string) bool {
	resp, err := http.Get("http://" + n.api + "/cluster")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var cluster struct {
		Members []struct{ Name, Role, State string }
	}
	if json.NewDecoder(resp.Body).Decode(&cluster) != nil {
		return false
	}
	for _, m := range cluster.Members {
		if m.Name == n.name && m.Role == role && (m.State == "running" || m.State == "streaming") {
			return true
		}
	}
	return false
}

// leaderOf returns the node that leads, and the other.
func leaderOf(t *testing.T, nodes []*node) (leader, other *node) {
	t.Helper()
	within(t, soon, "a node leads", func() bool {
		for i, n := range nodes {
			if n.is("leader") || n.is("primary") || n.is("master") {
				leader, other = n, nodes[1-i]
				return true
			}
		}
		return false
	})
	return leader, other
}
