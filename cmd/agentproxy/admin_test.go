package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentproxy/adapters/admin/signin"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/system"
	"agentproxy/cmd/internal/doctor"
)

func TestTheTokenIsPrinted(t *testing.T) {
	configure(t, "")
	t.Setenv("AGENTPROXY_DATABASE_URL", "sqlite://service.db")
	if status, out, errOut := command("admin", "token"); status != 1 || out != "" || !strings.Contains(errOut, "the first start of the service makes it") {
		t.Errorf("before the first start: %d %q %q", status, out, errOut)
	}
	token, err := system.LoadOrCreateToken("service.db.admin")
	if err != nil {
		t.Fatal(err)
	}
	if status, out, errOut := command("admin", "token"); status != 0 || out != token+"\n" {
		t.Errorf("%d %q %q", status, out, errOut)
	}
	if got := object(t, done(t, "admin", "token"))["token"]; got != token {
		t.Errorf("as JSON it is %v", got)
	}
	t.Setenv("AGENTPROXY_ADMIN_PASSWORD", "correct horse battery")
	if status, out, errOut := command("admin", "token"); status != 1 || strings.Contains(out+errOut, token) || strings.Contains(out+errOut, "horse") {
		t.Errorf("with a password: %d %q %q", status, out, errOut)
	}
	t.Setenv("AGENTPROXY_ADMIN_PASSWORD", "")
	t.Setenv("AGENTPROXY_DATABASE_URL", "postgres://u:p@127.0.0.1:1/none")
	t.Setenv("AGENTPROXY_SECRET", "0123456789abcdefghijklmnopqrstuvwxyz0123456789")
	if status, out, errOut := command("admin", "token"); status != 0 || len(out) != 44 || strings.Contains(out, "0123456789a") {
		t.Errorf("with PostgreSQL: %d %q %q", status, out, errOut)
	}
}

func TestTheLineOfAUserIsPrinted(t *testing.T) {
	hash := func(in string, args ...string) (string, error) {
		var out, errOut bytes.Buffer
		k := &kit{ctx: t.Context(), in: strings.NewReader(in), out: &out, errOut: &errOut}
		err := adminHashCmd{Name: args[0], Role: args[1]}.Run(k)
		return out.String(), err
	}
	for _, in := range []string{"correct horse battery\n", "correct horse battery", "correct horse battery\r\nmore\n"} {
		line, err := hash(in, "ann", "act")
		if err != nil || !strings.HasPrefix(line, "ann:act:$argon2id$") || strings.Count(line, "\n") != 1 {
			t.Fatalf("%q: %q, %v", in, line, err)
		}
		file := filepath.Join(t.TempDir(), "users")
		if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if users, err := signin.Load(file); err != nil || users.Len() != 1 {
			t.Errorf("the line is no line of a file: %v", err)
		}
	}
	for in, args := range map[string][]string{"": {"ann", "act"}, "short\n": {"ann", "act"}, "correct horse battery": {"operator", "act"},
		"correct horse battery\n": {"a:b", "read"}} {
		if line, err := hash(in, args...); err == nil || line != "" || strings.Contains(err.Error(), "horse") {
			t.Errorf("%q of %q: %q, %v", in, args, line, err)
		}
	}
	for _, args := range [][]string{{"admin", "hash"}, {"admin", "hash", "ann"}, {"admin", "hash", "ann", "--role", "root"}} {
		if status, _, _ := command(args...); status != exitUsage {
			t.Errorf("%q: %d", args, status)
		}
	}
}

// doctor reads the modes of the files that make an operator.
func TestTheFilesOfTheAdminListenerAreExamined(t *testing.T) {
	list := files(configfile.Settings{DatabasePath: "ap.db", AdminUsers: "users"})
	for _, path := range []string{"ap.db.admin", "users"} {
		if !slices.ContainsFunc(list, func(f doctor.File) bool { return f.Path == path && f.Secret }) {
			t.Errorf("%s is not examined: %v", path, list)
		}
	}
}
