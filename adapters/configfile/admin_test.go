package configfile_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
)

func TestWhoMayUseTheAdminListener(t *testing.T) {
	write(t, "admin_users: users\nmetrics_open: true\n")
	t.Setenv("AGENTPROXY_ADMIN_PASSWORD", "short one")
	_, err := configfile.Load(rules())
	wantFaults(t, err, "config.yaml:1: admin_users: stat users…", "AGENTPROXY_ADMIN_PASSWORD: must have 12 characters")
	if strings.Contains(err.Error(), "short one") {
		t.Errorf("the fault repeats the password: %v", err)
	}
	t.Setenv("AGENTPROXY_ADMIN_PASSWORD", "correct horse battery")
	if err := os.WriteFile("users", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s := load(t); string(s.AdminPassword) != "correct horse battery" || s.AdminUsers != "users" || !s.MetricsOpen {
		t.Errorf("the settings are %q, %v", s.AdminUsers, s.MetricsOpen)
	}
	rewrite(t, "admin_password: correct horse battery\n") // it is no setting of a file
	if _, err := configfile.Load(rules()); err == nil {
		t.Error("the file has a password")
	}
}

func TestAnAdminListenerInTheOpenIsWarnedOf(t *testing.T) {
	write(t, "")
	for at, want := range map[string]bool{"127.0.0.1:8082": false, "10.0.0.1:8082": false, "[fd00::1]:8082": false, "0.0.0.0:8082": false,
		"203.0.113.9:8082": true, "[2001:db8::1]:8082": true} {
		t.Setenv("AGENTPROXY_ADMIN_ADDR", at)
		warned := slices.ContainsFunc(load(t).Warnings, func(f configfile.Fault) bool {
			return f.Path == "AGENTPROXY_ADMIN_ADDR" && strings.Contains(f.Text, "TLS")
		})
		if warned != want {
			t.Errorf("%s: warned %v", at, warned)
		}
	}
}
