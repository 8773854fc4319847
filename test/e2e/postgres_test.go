package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
	"agentproxy/test/pg"
)

var (
	keys  = flag.Int("replicas.keys", campaign.Rounds(4, 200), "how many Idempotency-Keys are sent to two replicas")
	sends = flag.Int("replicas.sends", campaign.Rounds(20, 50), "how often each is sent at once")
)

// outage has the lease of a replica that died taken back after 40 s in place of 95. Within reclaimed another one
// leads and has settled what waited for it.
const (
	outage    = "AGENTPROXY_OUTAGE_SECONDS=20"
	reclaimed = 75 * time.Second
)

// replicas starts two services on one database.
func replicas(t *testing.T, env ...string) [2]*service {
	t.Helper()
	env = append(append([]string{"AGENTPROXY_DEVCHAIN_BLOCK_MS=60000"}, env...), onPostgres(pg.Database(t))...)
	return [2]*service{serve(t, env...), serve(t, env...)}
}

func TestKeysSentToTwoReplicasTakeEffectOnce(t *testing.T) {
	t.Parallel()
	both := sharedReplicas(t)
	key, _ := both[0].register("replicas")
	products := []string{"dyn_fast_1", "dyn_global_1"} // delivered at once, and by a job
	for n := range *keys {
		var mu sync.Mutex
		ids := map[string]bool{}
		counts, _ := together(*sends, func(i int) (reply, error) {
			for ; ; time.Sleep(50 * time.Millisecond) {
				r, err := both[i%2].call(t.Context(), "POST", "/sessions", key,
					fmt.Sprintf(`{"type":"dynamic","config":{"product_no":%q,"traffic_gb":0.1}}`, products[n%2]),
					"Idempotency-Key", fmt.Sprint("k", n))
				if err == nil && (r.status == 503 || r.code() == "IDEMPOTENCY_CONFLICT") {
					continue
				}
				if err == nil && r.status < 300 {
					var d apiclient.Session
					r.into(t, &d)
					mu.Lock()
					ids[d.SessionID] = true
					mu.Unlock()
				}
				return r, err
			}
		})
		if len(ids) != 1 || counts[201]+counts[202] != *sends {
			t.Fatalf("key %d: %d sessions of answers %v", n, len(ids), counts)
		}
	}
	var list struct{ Pagination struct{ Total int } }
	both[1].must(200, "GET", "/sessions", key, "").into(t, &list)
	if holds := both[1].count(key, "hold"); list.Pagination.Total != *keys || holds != *keys {
		t.Errorf("%d sessions and %d holds for %d keys", list.Pagination.Total, holds, *keys)
	}
	both[0].verify()
}

// What changes on one replica holds on the other within a second.
func TestChangesReachTheOtherReplica(t *testing.T) {
	t.Parallel()
	both := sharedReplicas(t)
	key, id := both[0].register("heard")
	var d apiclient.Session
	both[0].must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1"}}`).into(t, &d)
	proxy, err := url.Parse(both[1].session(key, d.SessionID).Proxy.HTTPURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Host = both[1].gateway
	if exit := both[1].exitOf(proxy.String()); !strings.HasPrefix(exit, "127.") {
		t.Errorf("the exit at the other replica is %s", exit)
	}
	both[0].object("agent", "disable", id, "--reason", "abuse")
	both[1].promised(time.Second, "the account is shut out at the other replica", func() bool {
		r, err := both[1].call(t.Context(), "GET", "/billing/balance", key, "")
		return err == nil && r.code() == "ACCOUNT_DISABLED"
	})
	both[1].promised(time.Second, "the session is over at the other replica", func() bool {
		_, _, status, err := connect(proxy, both[1].api)
		return err == nil && status == http.StatusGone
	})
}

// A call that waits at one replica answers with the event that the other one stores. It would end empty if it were not
// woken; what it answers if the event comes first is the same.
func TestCallsThatWaitAnswerWithEventsOfTheOtherReplica(t *testing.T) {
	t.Parallel()
	both := sharedReplicas(t)
	key, _ := both[0].register("waits")
	id := both[0].dynamic(key, "0.1")
	type feed struct {
		Items []struct{ Type string }
		Next  string
	}
	next := ""
	for range 5 {
		var before, after feed
		both[1].must(200, "GET", "/events?after="+next, key, "").into(t, &before)
		answer := make(chan reply, 1)
		go func() {
			r, err := both[1].call(t.Context(), "GET", "/events?wait=30&types=session.rotated&after="+before.Next, key, "")
			if err != nil {
				t.Error(err)
			}
			answer <- r
		}()
		for range 3 { // while it begins to wait
			both[1].must(200, "GET", "/sessions/"+id, key, "")
		}
		both[0].must(200, "POST", "/sessions/"+id+"/rotate", key, "")
		if (<-answer).into(t, &after); len(after.Items) != 1 || after.Items[0].Type != "session.rotated" {
			t.Fatalf("it answers %+v", after)
		}
		next = after.Next
	}
}

func TestWithoutItsServerTheServiceAnswersUnavailable(t *testing.T) {
	t.Parallel()
	server := pg.Start(t)
	s := serve(t, onPostgres(server.Database(t))...)
	key, _ := s.register("patient")
	s.must(200, "GET", "/billing/transactions", key, "")
	if err := server.Stop("fast"); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{{"GET", "/billing/transactions", ""}, {"POST", "/sessions", `{"type":"dynamic","config":{"product_no":"dyn_fast_1"}}`}} {
		if r := s.must(503, c[0], c[1], key, c[2]); r.code() != "SERVICE_UNAVAILABLE" || r.header.Get("Retry-After") == "" {
			t.Errorf("%s %s: %s, Retry-After %q", c[0], c[1], r.code(), r.header.Get("Retry-After"))
		}
	}
	s.logs(`"the service is unavailable","cause":"conne`)
	s.shows(`agentproxy_unavailable_total{cause="conne`) // connect or connection
	if err := server.Begin(); err != nil {
		t.Fatal(err)
	}
	within(t, soon, "it is back", func() bool {
		r, err := s.call(t.Context(), "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_global_1"}}`, "Idempotency-Key", "back")
		return err == nil && r.status == 202
	})
	within(t, soon, "its jobs are worked again", func() bool {
		var list struct{ Pagination struct{ Total int } }
		s.must(200, "GET", "/sessions?status=active", key, "").into(t, &list)
		return list.Pagination.Total == 1
	})
	s.verify()
}

func TestAWrongDatabaseIsOneClearLine(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	good := pg.Database(t)
	older, newer := pg.Empty(t), pg.Database(t)
	run(t, newer, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)")
	run(t, newer, "UPDATE schema_state SET min_compatible = 9999")
	s := &service{t: t, dir: t.TempDir(), api: "127.0.0.1:1", gateway: "127.0.0.1:1", admin: "127.0.0.1:1"}
	for _, c := range []struct {
		name, url, want string
		args            []string
	}{
		{"another kind", "mysql://eve:hunter2@db/x", "AGENTPROXY_DATABASE_URL", []string{"serve"}},
		{"no URL", "postgres://eve:hunter2@[::1/x", "AGENTPROXY_DATABASE_URL", []string{"verify"}},
		{"a closed port", "postgres://eve:hunter2@127.0.0.1:1/x", "cannot be reached", []string{"serve"}},
		{"a silent server", "postgres://eve:hunter2@" + silent.Addr().String() + "/x", "cannot be reached", []string{"verify"}},
		{"a wrong password", locked(t, good), "the user or the password", []string{"verify"}},
		{"an older schema", older, "agentproxy migrate", []string{"verify"}},
		{"an older schema", older, "agentproxy migrate", []string{"referrer", "add", "--name", "Partner", "--code", "X"}},
		{"a newer schema", newer, "newer version", []string{"serve"}},
		{"a newer schema", newer, "newer version", []string{"migrate"}},
		{"a copy", good, "pg_dump", []string{"backup", "copy"}},
	} {
		t.Run(c.name+", "+c.args[0], func(t *testing.T) {
			s.env = []string{"AGENTPROXY_DATABASE_URL=" + c.url, secret}
			out, err := s.run(c.args...)
			if exit(err) != 1 || !strings.Contains(out, c.want) || strings.Count(strings.TrimSpace(out), "\n") > 0 {
				t.Errorf("exit %d:\n%s", exit(err), out)
			}
			if strings.Contains(out, "hunter2") || strings.Contains(out, "eve") || strings.Contains(out, "://") && c.name != "another kind" && c.name != "no URL" {
				t.Errorf("it shows the URL:\n%s", out)
			}
		})
	}
	if run(t, older, "SELECT 1 FROM pg_tables WHERE schemaname = 'public'") {
		t.Error("a refused command made tables")
	}
	s.env = []string{"AGENTPROXY_DATABASE_URL=" + older, secret}
	for _, args := range [][]string{{"migrate"}, {"migrate"}, {"verify"}} {
		if out, err := s.run(args...); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	s.env = []string{"AGENTPROXY_DATABASE_URL=" + good}
	if out, err := s.run("serve"); exit(err) != 1 || !strings.Contains(out, "AGENTPROXY_SECRET") {
		t.Errorf("without a secret: %v\n%s", err, out)
	}
	s.env = []string{"AGENTPROXY_DATABASE_URL=sqlite://new.db"}
	if out, err := s.run("verify"); exit(err) != 1 || !strings.Contains(out, "there is no database") {
		t.Errorf("a file that does not exist: %v\n%s", err, out)
	}
	if _, err := os.Stat(s.dir + "/new.db"); err == nil {
		t.Error("a refused command made a file")
	}
}

// run executes a statement and reports whether it returns a row.
func run(t *testing.T, dsn, statement string) bool {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := rows.Next()
	rows.Close()
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// locked returns the URL of a database with a wrong password of a user who needs one.
func locked(t *testing.T, dsn string) string {
	t.Helper()
	run(t, dsn, `DO $$ BEGIN CREATE ROLE locked LOGIN PASSWORD 'right'; EXCEPTION WHEN duplicate_object THEN NULL; END $$`)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("user")
	u.User, u.RawQuery = url.UserPassword("locked", "hunter2"), q.Encode()
	return u.String()
}
