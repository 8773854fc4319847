package list

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain/session"
)

// The bounds of a list.
const (
	MaxBytes = 4 << 20
	MaxLines = 20000
)

// Line is one proxy of a list.
type Line struct {
	No             int              // in the file, from 1
	Protocol       session.Protocol // empty: that of the provider
	Host           string           // a name or an address, without brackets
	Port           uint16
	User, Password string

	Country     string // ISO 3166-1 alpha-2, upper case; empty: not known
	City        string
	Network     string    // one of networks; empty: not known
	Ends        time.Time // exclusive; zero: never
	MaxSessions int       // of dynamic sessions; 0: any number
}

// String hides the credential from logs and messages.
func (l Line) String() string { return net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))) }

// GoString hides it from %#v.
func (l Line) GoString() string { return l.String() }

// Key identifies the proxy in every version of a list: its host, port and user name, not
// readable.
func (l Line) Key() string {
	sum := sha256.Sum256([]byte(strings.ToLower(l.Host) + "\x00" + strconv.Itoa(int(l.Port)) + "\x00" + l.User))
	return hex.EncodeToString(sum[:16])
}

// Fault is what is wrong with a line of a list. It repeats nothing of the line, which may
// hold a password.
type Fault struct {
	Line int
	Text string
}

func (f Fault) Error() string { return "line " + strconv.Itoa(f.Line) + ": " + f.Text }

// Parse reads a list of proxies, one on each line. It returns the proxies and every fault;
// a list with a fault should not be used.
//
// A proxy is host:port, host:port:user:password, user:password@host:port,
// user:password:host:port or host:port@user:password, or a URL of http, https, socks5 or
// socks5h; "," or "|" may be in place of ":". An IPv6 address is in brackets. Behind it, each
// after spaces or tabs, may be columns: country, city, network, end and most sessions in this
// order, "-" for none, or by name such as country=US. Named columns may also follow " #",
// which otherwise begins a comment.
func Parse(text []byte) (lines []Line, faults []Fault) {
	if len(text) > MaxBytes {
		return nil, []Fault{{1, fmt.Sprintf("the list is longer than %d bytes", MaxBytes)}}
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	first := map[string]int{} // line of each proxy
	no := 0
	for raw := range strings.Lines(string(text)) {
		no++
		l, found, err := parseLine(raw)
		if err != nil {
			faults = append(faults, Fault{no, err.Error()})
			continue
		}
		if !found {
			continue
		}
		if at, twice := first[l.Key()]; twice {
			faults = append(faults, Fault{no, fmt.Sprintf("is the proxy of line %d: host, port and user name are the same", at)})
			continue
		}
		l.No, first[l.Key()] = no, no
		if lines = append(lines, l); len(lines) > MaxLines {
			return nil, append(faults, Fault{no, fmt.Sprintf("the list has more than %d proxies", MaxLines)})
		}
	}
	return lines, faults
}

// parseLine reads one line; found is false for one without a proxy.
func parseLine(raw string) (l Line, found bool, err error) {
	raw = strings.TrimSpace(raw)
	if raw == "" || raw[0] == '#' {
		return l, false, nil
	}
	fields := strings.FieldsFunc(raw, func(c rune) bool { return c == ' ' || c == '\t' })
	for _, f := range fields {
		if !visible(f) {
			return l, false, errControl
		}
	}
	columns, tail := fields[1:], []string(nil)
	for i, f := range columns {
		if f[0] == '#' {
			tail = append(tail, append([]string{f[1:]}, columns[i+1:]...)...)
			columns = columns[:i]
			break
		}
	}
	if l, err = parseProxy(fields[0]); err != nil {
		return l, false, err
	}
	for i, c := range columns {
		name, value, named := strings.Cut(c, "=")
		if !named {
			if i >= len(columnNames) {
				return l, false, errTooMany
			}
			if name, value = columnNames[i], c; c == "-" {
				continue
			}
		}
		if err := l.set(name, value); err != nil {
			return l, false, err
		}
	}
	for _, c := range tail { // other words are a comment
		if name, value, named := strings.Cut(c, "="); named && isColumn(name) {
			if err := l.set(name, value); err != nil {
				return l, false, err
			}
		}
	}
	return l, true, nil
}

// visible reports whether a text is valid UTF-8 without control characters.
func visible(s string) bool {
	for _, c := range s {
		if c < ' ' || c == 0x7f || c == '\ufffd' || c == '\ufeff' {
			return false
		}
	}
	return true
}

// URL returns the proxy as a URL with its credential; a line without a scheme has the
// given protocol.
func (l Line) URL(otherwise session.Protocol) string {
	u := url.URL{Scheme: string(cmp.Or(l.Protocol, otherwise)), Host: l.String()}
	if l.User != "" {
		u.User = url.UserPassword(l.User, l.Password)
	}
	return u.String()
}
