package signin

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
)

// Users are the users of a file.
type Users struct{ byName map[string]*entry }

// entry is one of them.
type entry struct {
	User
	hash passwordHash

	mu    sync.Mutex
	right digest // of the password that was found right; zero before
}

// remember keeps the digest of the right password.
func (e *entry) remember(d digest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.right = d
}

// user returns the user of an entry; nil has none.
func (e *entry) user() User {
	if e == nil {
		return User{}
	}
	return e.User
}

func (e *entry) isRemembered(d digest) bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.right != digest{} && subtle.ConstantTimeCompare(d[:], e.right[:]) == 1
}

// Bounds of a file of users.
const (
	maxUsers = 1000
	maxFile  = 1 << 20 // bytes
	maxName  = 64
)

var userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$`)

func checkUser(name string, role Role) error {
	switch {
	case !userName.MatchString(name):
		return errors.New("the name must be 1 to 64 of A-Z, a-z, 0-9, ., _, @, + and -, and begin with a letter or digit")
	case strings.EqualFold(name, Operator):
		return errors.New("the name " + Operator + " is that of the listener's own credential")
	case role != Read && role != Act:
		return errors.New("the role must be read or act")
	}
	return nil
}

// Load reads a file of users: one in a line, as NAME:ROLE:HASH; empty lines, and those that begin with #, count
// nothing. It refuses a file that others can read, or the group can change. No error repeats a hash.
func Load(path string) (Users, error) {
	f, err := os.Open(path)
	if err != nil {
		return Users{}, fmt.Errorf("read the users of the admin listener: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Users{}, fmt.Errorf("read the users of the admin listener: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Users{}, fmt.Errorf("%s is not a regular file", path)
	}
	if perm := info.Mode().Perm(); perm&0o027 != 0 {
		return Users{}, fmt.Errorf("%s has mode %04o, so others can read or change it; run: chmod 600 %s", path, perm, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Users{}, fmt.Errorf("read the users of the admin listener: %w", err)
	}
	if len(text) > maxFile {
		return Users{}, fmt.Errorf("%s has more than 1 MiB", path)
	}
	users, err := parse(string(text))
	if err != nil {
		return Users{}, fmt.Errorf("%s:%w", path, err)
	}
	return users, nil
}

func parse(text string) (Users, error) {
	users := Users{byName: map[string]*entry{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			return users, fmt.Errorf("%d: must be NAME:ROLE:HASH", n)
		}
		e := &entry{User: User{parts[0], Role(parts[1])}}
		if err := checkUser(e.Name, e.Role); err != nil {
			return users, fmt.Errorf("%d: %w", n, err)
		}
		var err error
		if e.hash, err = parseHash(parts[2]); err != nil {
			return users, fmt.Errorf("%d: the hash %w", n, err)
		}
		if users.byName[e.Name] != nil {
			return users, fmt.Errorf("%d: the user %s has two lines", n, e.Name)
		}
		if users.byName[e.Name] = e; len(users.byName) > maxUsers {
			return users, fmt.Errorf("%d: there are more than %d users", n, maxUsers)
		}
	}
	return users, nil
}

// Len returns how many users there are.
func (u Users) Len() int { return len(u.byName) }
