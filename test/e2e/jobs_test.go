package e2e_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"agentproxy/adapters/apiclient"
)

// sqlRun runs a statement on the database of a service.
func (s *service) sqlRun(statement string) {
	s.t.Helper()
	for _, v := range s.env {
		if url, found := strings.CutPrefix(v, "AGENTPROXY_DATABASE_URL="); found {
			run(s.t, url, statement)
			return
		}
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.dir, "agentproxy.db")+"?_busy_timeout=10000")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(s.t.Context(), statement); err != nil {
		s.t.Fatal(err)
	}
}

// jobs lists jobs by the operator's command.
func (s *service) jobs(args ...string) (list []map[string]any) {
	s.t.Helper()
	out, err := s.done(append([]string{"--json", "jobs", "list"}, args...)...)
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		s.t.Fatalf("jobs list: %v\n%s", err, out)
	}
	return list
}

func TestAPoisonedJobIsParkedAndReplayed(t *testing.T) {
	onEachStore(t, aPoisonedJobIsParkedAndReplayed)
}

func aPoisonedJobIsParkedAndReplayed(t *testing.T, store ...string) {
	s := serve(t, store...)
	key, _ := s.register("poisoned")
	poison := func() (id string) {
		s.sqlRun(`INSERT INTO river_job (kind, args, max_attempts) VALUES ('drive-orders', '{"session_id":7}', 1)`)
		within(t, soon, "it is parked", func() bool {
			list := s.jobs("--state", "discarded", "--kind", "drive-orders")
			if len(list) == 1 {
				id = fmt.Sprintf("%.0f", list[0]["job_id"])
			}
			return id != ""
		})
		return id
	}
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1}}`).into(t, &d)
	id := poison()
	s.sqlRun(`INSERT INTO river_job (kind, args, max_attempts, state, scheduled_at)
		VALUES ('drive-orders', '{"session_id":"sess_later"}', 8, 'scheduled', '2099-01-01 00:00:00')`)
	if list := s.jobs("--state", "scheduled"); len(list) != 1 || list[0]["subject"] != "sess_later" {
		t.Errorf("the job that waits is not listed: %v", list)
	}
	s.sqlRun(`UPDATE river_job SET args = '{"session_id":"` + d.SessionID + `"}' WHERE id = ` + id)
	s.object("jobs", "retry", id)
	within(t, soon, "it is done", func() bool {
		return slices.ContainsFunc(s.jobs("--state", "completed", "--kind", "drive-orders"), func(j map[string]any) bool {
			return fmt.Sprintf("%.0f", j["job_id"]) == id
		})
	})
	id = poison()
	s.object("jobs", "discard", id)
	if list := s.jobs("--state", "discarded"); len(list) != 0 {
		t.Errorf("it is not gone: %v", list)
	}
	for _, args := range [][]string{{"jobs", "discard", id}, {"jobs", "retry", "987654321"}, {"--json", "jobs", "retry", "987654321"}} {
		if out, err := s.run(args...); exit(err) != 1 || !strings.Contains(out, "no job") {
			t.Errorf("%v: exit %d\n%s", args, exit(err), out)
		}
	}
	for _, args := range [][]string{{"jobs", "retry", "x"}, {"jobs", "list", "--state", "lost"}} {
		if out, err := s.run(args...); exit(err) != 2 {
			t.Errorf("%v: exit %d\n%s", args, exit(err), out)
		}
	}
	if b := s.balance(key); b != "9.6" {
		t.Errorf("a trial ended before its time: the balance is %s", b)
	}
	s.verify()
}

// soon makes the time of every static session come, as if it had been bought that long ago.
func (s *service) soon(after time.Duration) {
	at := time.Now().Add(after)
	s.sqlRun(fmt.Sprintf("UPDATE sessions SET expires_at = %d, activated_at = %[1]d - days * 86400000000, "+
		"created_at = %[1]d - days * 86400000000 WHERE type = 'static' AND ended_at = 0", at.UnixMicro()))
}

func TestAStaticSessionExpires(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ...string) {
		s := serve(t, append(store, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")...)
		key, _ := s.register("static")
		var d apiclient.Session
		s.must(201, "POST", "/sessions", key, staticBody).into(t, &d)
		s.soon(3 * time.Second)
		within(t, soon, "it is expired", func() bool { return s.session(key, d.SessionID).Status == "expired" })
		s.kill()
		s.start() // the dead process led; on SQLite its lease does not delay the next one
		s.must(201, "POST", "/sessions", key, staticBody).into(t, &d)
		s.soon(time.Second)
		within(t, soon, "it is expired after a crash", func() bool { return s.session(key, d.SessionID).Status == "expired" })
		s.verify()
	})
}

const staticBody = `{"type":"static","config":{"product_no":"sta_isp_1","quantity":1,"duration_days":30,"country":"DE"}}`

// The replica that led is killed: another does what it alone did.
func TestAnotherReplicaLeadsAfterACrash(t *testing.T) {
	t.Parallel()
	both := replicas(t)
	key, _ := both[1].register("static")
	var d apiclient.Session
	both[1].must(201, "POST", "/sessions", key, staticBody).into(t, &d)
	both[1].soon(time.Second)
	within(t, soon, "it is expired by the first, which leads", func() bool {
		return both[1].session(key, d.SessionID).Status == "expired"
	})
	leads := func(s *service) bool {
		_, metrics := s.page("/metrics")
		return strings.Contains(metrics, "\nagentproxy_leader 1\n")
	}
	within(t, soon, "the metrics show that the first leads", func() bool { return leads(both[0]) && !leads(both[1]) })
	both[1].must(201, "POST", "/sessions", key, staticBody).into(t, &d)
	both[0].crash()
	both[1].soon(time.Second)
	within(t, soon, "the session is expired by the other", func() bool {
		return both[1].session(key, d.SessionID).Status == "expired"
	})
	within(t, soon, "the metrics show who leads", func() bool { return leads(both[1]) })
	both[1].verify()
}
