package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"agentproxy/adapters/admin"
	"agentproxy/adapters/admin/signin"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/conns"
	"agentproxy/adapters/system"
	"agentproxy/ports"

	desk "agentproxy/adapters/admin/console"
)

// AdminFile returns the file beside a SQLite database that holds the token of the admin listener.
func AdminFile(database string) string { return database + ".admin" }

// AdminToken returns the token of the admin listener, which AGENTPROXY_ADMIN_PASSWORD replaces. With SQLite the first
// start of the service makes it.
func AdminToken(s configfile.Settings) (string, error) {
	switch {
	case s.AdminPassword != "":
		return "", errors.New("AGENTPROXY_ADMIN_PASSWORD is set, so the admin listener has no token")
	case s.DatabasePath == "":
		root, err := system.ParseRoot(string(s.RootSecret))
		if err != nil {
			return "", err
		}
		secrets, err := system.NewSecrets(root)
		if err != nil {
			return "", err
		}
		return secrets.AdminToken(), nil
	}
	token, err := system.LoadToken(AdminFile(s.DatabasePath))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no %s: the first start of the service makes it", AdminFile(s.DatabasePath))
	}
	return token, err
}

// newGate returns what admits users to the admin listener.
func newGate(s configfile.Settings, secrets *system.Secrets, clock ports.Clock, log *slog.Logger) (
	*signin.Gate, error) {
	c := signin.Config{Secret: string(s.AdminPassword)}
	var err error
	switch {
	case s.AdminPassword != "":
	case s.DatabasePath != "":
		c.Token = true
		c.Secret, err = system.LoadOrCreateToken(AdminFile(s.DatabasePath))
	default:
		c.Token, c.Secret = true, secrets.AdminToken()
	}
	if err == nil && s.AdminUsers != "" {
		c.Users, err = signin.Load(s.AdminUsers)
	}
	if err != nil {
		return nil, err
	}
	return signin.New(c, clock, log), nil
}

func adminConfig(s configfile.Settings, b conns.Budget, c *desk.Console, gate *signin.Gate) admin.Config {
	return admin.Config{Addr: s.AdminAddr, Pprof: s.Dev, Hosts: s.AdminHosts, Connections: b.Admin, Console: c, Gate: gate,
		OpenMetrics: s.MetricsOpen, DrainDelay: s.DrainDelay}
}

// reloadUsers returns what reads the users of the admin listener again; nil if the service has none.
func reloadUsers(s configfile.Settings, gate *signin.Gate) func() (int, error) {
	if s.AdminUsers == "" {
		return nil
	}
	return func() (int, error) {
		users, err := signin.Load(s.AdminUsers)
		if err == nil {
			gate.Replace(users)
		}
		return users.Len(), err
	}
}
