package e2e_test

import (
	"strings"
	"testing"
	"time"
)

// Where registration is closed the operator opens accounts, verifies them, and replaces a key that leaked.
func TestOperatorsKeepAccounts(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_REGISTRATION=closed")
	if r := s.must(403, "POST", "/account/register", "", `{"name":"stranger"}`); r.code() != "REGISTRATION_CLOSED" {
		t.Errorf("a stranger is answered %s", r.code())
	}
	added := s.object("agent", "add", "--name", "Customer")
	id, key := added["agent_id"].(string), added["api_key"].(string)
	info := func(key string) (tier string) {
		var a struct{ Tier string }
		s.must(200, "GET", "/account/info", key, "").into(t, &a)
		return a.Tier
	}
	if tier := info(key); tier != "trial" {
		t.Errorf("the tier is %s", tier)
	}
	if out, err := s.run("agent", "set-tier", id, "verified"); exit(err) != 1 || !strings.Contains(out, "evidence") {
		t.Errorf("without evidence: %v\n%s", err, out)
	}
	s.object("agent", "set-tier", id, "verified", "--evidence", "contract 12")
	if tier := info(key); tier != "verified" {
		t.Errorf("the tier is %s", tier)
	}
	s.object("agent", "set-tier", id, "trial")
	fresh := s.object("agent", "rotate-key", id)["api_key"].(string)
	s.promised(time.Second, "the end of the old key", func() bool {
		r, err := s.call(t.Context(), "GET", "/account/info", key, "")
		return err == nil && r.status == 401
	})
	if tier := info(fresh); tier != "trial" {
		t.Errorf("the tier is %s", tier)
	}
}

func TestAgentsAreFoundByWhereTheyRegisteredFrom(t *testing.T) {
	t.Parallel()
	s := serve(t)
	key, _ := s.register("local")
	s.object("agent", "add", "--name", "Customer")
	out, err := s.run("agent", "list", "--registered-from", "127.0.0.0/8")
	if err != nil || !strings.Contains(out, "127.0.0.1") || !strings.Contains(out, "local") || strings.Contains(out, "Customer") {
		t.Errorf("listed %v\n%s", err, out)
	}
	for _, wrong := range [][]string{{"list", "--registered-from", "127.0.0.1/8"}, {"disable", "--reason", "x"},
		{"disable", "agt_x", "--registered-from", "127.0.0.1", "--reason", "x"}} {
		if out, err := s.run(append([]string{"agent"}, wrong...)...); exit(err) != 1 {
			t.Errorf("%v: %v\n%s", wrong, err, out)
		}
	}
	if out, err := s.run("agent", "disable", "--registered-from", "127.0.0.0/8", "--reason", "abuse"); err != nil || strings.Count(out, "agt_") != 1 {
		t.Errorf("disabled %v\n%s", err, out)
	}
	s.promised(time.Second, "the account to be disabled", func() bool {
		r, err := s.call(t.Context(), "GET", "/account/info", key, "")
		return err == nil && r.status == 403
	})
}
