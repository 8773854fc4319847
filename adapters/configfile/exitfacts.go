package configfile

import (
	"net/netip"
	"os"
	"regexp"
	"strings"
	"time"

	"agentproxy/domain/exit"
)

// ExitSource is a source of facts about exits: a file, or a list that is asked by DNS.
type ExitSource struct {
	Kind     string // mmdb, ranges or dnsbl
	Name     string // of the file or the zone, as it is configured
	Label    string // by which a list is shown
	Zone     string // of a list
	Resolver string // of a list, host:port; empty: the system's
	// File returns what a file has about an address; nil for a list.
	File func(netip.Addr) exit.Known `json:"-"`
	// Built is when the facts of a file were gathered, as its database has it or by its last change.
	Built time.Time
	// Has are the facts that a file can have.
	Has exit.Fields
}

// maxExitSources bounds the sources: each look-up asks all of them.
const maxExitSources = 16

// staleFacts is the age in which addresses have changed hands often enough that facts about them are doubtful.
const staleFacts = 30 * 24 * time.Hour

// exitFacts reads the sources of facts about exits.
func (l *loader) exitFacts(v value) (list []ExitSource) {
	items := v.items()
	if len(items) > maxExitSources {
		v.fault("has more than %d sources", maxExitSources)
		return nil
	}
	count := 0 // networks in all files
	for _, item := range items {
		m := item.fields(exitFactKeys)
		s := ExitSource{Kind: m.need("kind").text()}
		switch s.Kind {
		case "mmdb", "ranges":
			file := m.need("file")
			for _, other := range []string{"zone", "label", "resolver"} {
				if at := m.get(other); at.given() {
					at.fault("is for lists of the kind dnsbl")
				}
			}
			var ok bool
			if s.Name, ok = file.scalar(); !ok {
				continue
			}
			if s.Kind == "mmdb" {
				l.database(file, &s)
			} else {
				exitRanges(file, &s, &count)
			}
			if !s.Built.IsZero() && l.Now().Sub(s.Built) > staleFacts {
				file.warn("has facts from " + s.Built.Format(time.DateOnly) +
					"; addresses change hands, so get them anew each month")
			}
		case "dnsbl":
			exitList(m, &s)
		case "":
		default:
			m.get("kind").fault("must be mmdb, ranges or dnsbl")
		}
		list = append(list, s)
	}
	return list
}

// database opens a MaxMind database.
func (l *loader) database(v value, s *ExitSource) {
	var err error
	if s.File, s.Has, s.Built, err = l.ExitDatabase(v.beside(s.Name)); err != nil {
		v.fault("cannot be read: %s", cause(err))
	}
}

// exitRanges reads a file of ranges. count counts the networks of all such files.
func exitRanges(v value, s *ExitSource, count *int) {
	var b exit.RangesBuilder
	faults := 0
	fileLines(v, s.Name, func(n int, text string) bool {
		if *count++; *count > exit.MaxRanges {
			v.fault("has more than %d networks, those of other files included", exit.MaxRanges)
			return false
		}
		err := b.Line(text)
		return err == nil || v.lineFault(&faults, n, err)
	})
	s.File, s.Has = b.Ranges().Lookup, b.Has()
	if info, err := os.Stat(v.beside(s.Name)); err == nil {
		s.Built = info.ModTime().UTC()
	}
}

// zoneForm is the form of the zone of a list: a name of at least two labels, which leaves room for the nibbles of an
// IPv6 address in the 253 characters of a name.
var zoneForm = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.?$`)

const maxZone = 180

// exitList reads a list.
func exitList(m fields, s *ExitSource) {
	if at := m.get("file"); at.given() {
		at.fault("is for mmdb and ranges")
	}
	zone, label, resolver := m.need("zone"), m.need("label"), m.get("resolver")
	s.Zone, s.Label, s.Resolver = strings.ToLower(zone.text()), label.text(), resolver.text()
	s.Name = s.Zone
	if s.Zone != "" && (len(s.Zone) > maxZone || !zoneForm.MatchString(s.Zone)) {
		zone.fault("must be the name of a DNS zone, such as bl.example.net")
	}
	if s.Label != "" && !exit.IsLabel(s.Label) {
		label.fault("must be 1 to 32 of a-z, 0-9, _, . and -")
	}
	if resolver.given() {
		if at, err := netip.ParseAddrPort(s.Resolver); err != nil || at.Port() == 0 {
			resolver.fault("must be the address and port of a DNS server, such as 127.0.0.1:53")
		}
	}
}
