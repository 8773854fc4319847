package signin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentproxy/adapters/admin/signin"
)

func TestAFileOfUsersIsChecked(t *testing.T) {
	t.Parallel()
	const sum = "AAAAAAAAAAAAAAAAAAAAAA"
	hash := "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$" + sum
	file := filepath.Join(t.TempDir(), "users")
	for text, want := range map[string]string{
		"":                "",
		"# none yet\n\n":  "",
		"ann:act:" + hash: "",
		"ann:act:" + hash + "\r\n  rob:read:" + hash + "\n": "",
		"ann@example.com:read:" + hash:                      "",
		"ann":                                               "users:1: must be NAME:ROLE:HASH",
		"\nann:act":                                         "users:2: must be NAME:ROLE:HASH",
		"ann:admin:" + hash:                                 "the role must be read or act",
		":act:" + hash:                                      "the name must be",
		"an n:act:" + hash:                                  "the name must be",
		strings.Repeat("n", 65) + ":act:" + hash:            "the name must be",
		"operator:act:" + hash:                              "the listener's own credential",
		"Operator:read:" + hash:                             "the listener's own credential",
		"ann:act:" + hash + "\nann:read:" + hash:            "users:2: the user ann has two lines",
		"ann:act:hunter2":                                   "not an argon2id hash",
		"ann:act:" + strings.Replace(hash, "argon2id", "argon2i", 1):                          "not an argon2id hash",
		"ann:act:" + strings.Replace(hash, "v=19", "v=16", 1):                                 "not an argon2id hash",
		"ann:act:" + hash + "=":                                                               "not an argon2id hash",
		"ann:act:" + hash + "$x":                                                              "not an argon2id hash",
		"ann:act:" + hash + "B":                                                               "not an argon2id hash", // bits that are no byte
		"ann:act:" + strings.Replace(hash, "m=19456", "m=1024", 1):                            "out of bounds",
		"ann:act:" + strings.Replace(hash, "m=19456", "m=999999999", 1):                       "out of bounds",
		"ann:act:" + strings.Replace(hash, "t=2", "t=0", 1):                                   "out of bounds",
		"ann:act:" + strings.Replace(hash, "t=2", "t=1", 1):                                   "out of bounds",
		"ann:act:" + strings.Replace(hash, "t=2", "t=99", 1):                                  "out of bounds",
		"ann:act:" + strings.Replace(hash, "p=1", "p=0", 1):                                   "out of bounds",
		"ann:act:" + strings.Replace(hash, "p=1", "p=255", 1):                                 "out of bounds",
		"ann:act:" + strings.Replace(hash, "m=19456,t=2", "m=262144,t=10", 1):                 "out of bounds",
		"ann:act:" + strings.Replace(hash, "c2FsdHNhbHRzYWx0", "c2E", 1):                      "a salt of",
		"ann:act:" + strings.Replace(hash, sum, "AAAA", 1):                                    "a salt of",
		"ann:act:$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$" + strings.Repeat("A", 300): "not an argon2id hash",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := signin.Load(file)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.80q: %v, want %q", text, err, want)
		case err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "c2Fs")):
			t.Errorf("the error has the hash: %v", err)
		}
	}
	many := strings.Builder{}
	for i := range 1001 {
		many.WriteString("u" + strings.Repeat("x", i%60) + string(rune('a'+i/60)) + ":read:" + hash + "\n")
	}
	for text, want := range map[string]string{many.String(): "more than 1000 users", strings.Repeat("#\n", 600_000): "more than 1 MiB"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := signin.Load(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAFileOfUsersThatOthersReachIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: false, 0o644: true, 0o660: true, 0o604: true, 0o666: true} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := signin.Load(file); (err != nil) != refused || refused && !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%04o: %v", mode, err)
		}
	}
	for _, path := range []string{filepath.Dir(file), file + ".none"} {
		if _, err := signin.Load(path); err == nil {
			t.Errorf("%s is read", path)
		}
	}
}

func TestALineOfAUser(t *testing.T) {
	t.Parallel()
	one, two := lines()[0], ""
	var err error
	if two, err = signin.Line("ann", signin.Act, password); err != nil || one == two {
		t.Errorf("two hashes of one password are the same, or %v", err)
	}
	if !strings.HasPrefix(one, "ann:act:$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(one, password) {
		t.Errorf("the line is %s", one)
	}
	for _, c := range []struct {
		name     string
		role     signin.Role
		password string
	}{{"ann", "admin", password}, {"", signin.Act, password}, {"operator", signin.Act, password}, {"ann", signin.Act, "short"},
		{"ann", signin.Act, strings.Repeat("p", 1025)}, {"ann", signin.Act, " " + password}, {"a:b", signin.Act, password}} {
		if line, err := signin.Line(c.name, c.role, c.password); err == nil {
			t.Errorf("%s %s: %s", c.name, c.role, line)
		}
	}
}
