// Package link is a proxy between a program and a PostgreSQL server: it counts how often the
// program waits for the server, delays what passes, and cuts connections, as a network between them
// does.
package link

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Link is a proxy before a server.
type Link struct {
	listener net.Listener
	server   string // a Unix socket
	delay    time.Duration
	asked    atomic.Int64
	cut      atomic.Int32

	mu    sync.Mutex
	conns []net.Conn
}

// Cut is a moment at which a connection is cut.
type Cut int32

// The moments.
const (
	never        Cut = iota
	BeforeCommit     // the server does not receive it
	AfterCommit      // the program does not receive its success
)

// New opens a proxy before the server of a URL, until the test ends, and returns the URL of the
// proxy. What passes is delayed in each direction.
func New(t testing.TB, dsn string, delay time.Duration) (*Link, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	l := &Link{server: q.Get("host") + "/.s.PGSQL.5432", delay: delay}
	if !strings.HasPrefix(l.server, "/") {
		t.Skip("the server has no Unix socket to put a link before")
	}
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go l.serve()
	t.Cleanup(func() { l.Close(); l.Drop() })
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.listener.Addr().String(), q.Encode()
	return l, u.String()
}

// Asked returns how often the program spoke after the server had, on any of its connections.
func (l *Link) Asked() int64 { return l.asked.Load() }

// CutAt cuts the connection of the next commit.
func (l *Link) CutAt(c Cut) { l.cut.Store(int32(c)) }

// Armed reports whether the commit that CutAt is for has not come yet.
func (l *Link) Armed() bool { return Cut(l.cut.Load()) != never }

// Close takes no more connections. Those that are open stay.
func (l *Link) Close() { _ = l.listener.Close() }

// Drop cuts every connection.
func (l *Link) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func (l *Link) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", l.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, client, server)
		l.mu.Unlock()
		var answered, deaf atomic.Bool
		go l.pass(client, server, func(message []byte) bool {
			if answered.CompareAndSwap(true, false) {
				l.asked.Add(1)
			}
			if !isCommit(message) {
				return true
			}
			if l.cut.CompareAndSwap(int32(AfterCommit), int32(never)) {
				deaf.Store(true)
			}
			return !l.cut.CompareAndSwap(int32(BeforeCommit), int32(never))
		})
		go l.pass(server, client, func([]byte) bool {
			answered.Store(true)
			return !deaf.Load()
		})
	}
}

// isCommit reports whether a message has COMMIT as text, or executes it by the name that pgx gives a
// prepared statement.
func isCommit(message []byte) bool {
	digest := sha256.Sum256([]byte("COMMIT"))
	return bytes.Contains(message, []byte("COMMIT\x00")) ||
		bytes.Contains(message, []byte("stmtcache_"+hex.EncodeToString(digest[:24])))
}

// part is what was read at a time, and when it is due at the other side.
type part struct {
	bytes []byte
	due   time.Time
}

// pass copies what arrives, each part as late as it is due, until either side ends or a part may
// not pass.
func (l *Link) pass(from, to net.Conn, passes func(part []byte) bool) {
	late := make(chan part, 1024)
	go func() {
		defer func() { _ = to.Close() }()
		for p := range late {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				_ = from.Close()
			}
		}
	}()
	defer close(late)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !passes(buf[:n]) {
				return
			}
			if l.delay == 0 {
				_, err = to.Write(buf[:n])
			} else {
				late <- part{append([]byte(nil), buf[:n]...), time.Now().Add(l.delay)}
			}
		}
		if err != nil {
			return
		}
	}
}
