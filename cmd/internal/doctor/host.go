package doctor

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/conns"
)

// File is a file of the service, and who may do what with it.
type File struct {
	Path   string
	What   string
	Secret bool // readable by its owner alone; else writable by its owner alone
}

// Files checks the modes of files. One that does not exist is left out.
func Files(files []File) (f Findings) {
	for _, x := range files {
		info, err := os.Stat(x.Path)
		if err != nil {
			continue
		}
		bad, may, mode := fs.FileMode(0o022), "change", "go-w"
		if x.Secret {
			bad, may, mode = 0o027, "read or change", "600"
		}
		perm := info.Mode().Perm()
		if perm&bad == 0 {
			f.ok("file_modes", "%s %s has mode %04o.", x.What, x.Path, perm)
			continue
		}
		f.add(Error, "file_modes", fmt.Sprintf("%s %s has mode %04o.", x.What, x.Path, perm),
			"Other users of this host can "+may+" it.", "Run: chmod "+mode+" "+x.Path)
	}
	return f
}

// Host describes the process that the command is.
type Host struct {
	Descriptors int // that it may have open; 0: unknown
	UserID      int // -1: unknown
	// Gateways are the routers of this host's routes: in a container the bridge, by which clients may come.
	Gateways []netip.Addr
}

// good is the number of descriptors that docs/operating.md recommends.
const good = 65_536

// Process checks what the host lets the service do, as far as a command of the same user shows it.
func Process(h Host, s configfile.Settings) (f Findings) {
	const do = "Raise nofile to 65,536 where the service is started: LimitNOFILE of systemd, ulimits of a container."
	budget := conns.Divide(h.Descriptors)
	switch {
	case h.Descriptors == 0:
	case s.AgentConnections >= budget.Gateway:
		f.add(Error, "descriptors", fmt.Sprintf("%d file descriptors hold %d connections of the gateway, and one agent "+
			"may have %d.", h.Descriptors,
			budget.Gateway, s.AgentConnections), "One account shuts all others out.",
			do+" Or lower AGENTPROXY_AGENT_CONNECTIONS.")
	case h.Descriptors < good:
		f.add(Warning, "descriptors", fmt.Sprintf("%d file descriptors hold %d connections of the gateway.", h.Descriptors,
			budget.Gateway),
			"A few agents fill them.", do)
	default:
		f.ok("descriptors", "%d file descriptors hold %d connections of the gateway.", h.Descriptors, budget.Gateway)
	}
	if h.UserID == 0 {
		f.add(Warning, "user", "The command runs as root.", "If the service does too, a fault of it is one of "+
			"the whole host.",
			"Run the service as a user of its own.")
	}
	f.routers(h, s)
	return f
}
