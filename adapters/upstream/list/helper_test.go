package list_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/upstream/kind"
	"agentproxy/adapters/upstream/list"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/pg"
	"agentproxy/test/sqlitetest"
)

// world is a list in a file, a store, and what the probes find.
type world struct {
	t     *testing.T
	file  string
	store ports.Store
	log   strings.Builder

	mu    sync.Mutex
	now   time.Time
	exits map[string]string // by host; empty: the probe fails
	tried map[string]int
}

func openStore(t *testing.T) *storage.Store {
	t.Helper()
	st, err := storage.Open(context.Background(), storage.Config{Path: sqlitetest.File(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// onEachStore runs a test on both databases. Each call of stores opens the database for another replica.
func onEachStore(t *testing.T, test func(t *testing.T, stores func() ports.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		st := openStore(t)
		test(t, func() ports.Store { return st })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pg.Database(t)
		test(t, func() ports.Store {
			st, err := storage.Open(context.Background(), storage.Config{URL: storage.URL(url)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			if err := st.Migrate(context.Background()); err != nil {
				t.Fatal(err)
			}
			return st
		})
	})
}

func newWorld(t *testing.T, text string) *world {
	t.Helper()
	w := &world{t: t, file: filepath.Join(t.TempDir(), "list.txt"), store: openStore(t), now: time.Now().UTC().Truncate(time.Microsecond),
		exits: map[string]string{}, tried: map[string]int{}}
	w.write(text)
	return w
}

// write replaces the file, with a time that differs from the one before.
func (w *world) write(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.advance(time.Second)
	if err := os.Chtimes(w.file, w.time(), w.time()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// exit sets what a probe of a host finds.
func (w *world) exit(host, exit string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exits[host] = exit
}

// probe finds the host's own address unless exit has set another.
func (w *world) probe(_ context.Context, l list.Line) (list.Probe, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tried[l.Host]++
	exit, known := w.exits[l.Host]
	if !known {
		exit = l.Host
	}
	ip, err := netip.ParseAddr(exit)
	if err != nil {
		return list.Probe{}, errors.New("no exit")
	}
	return list.Probe{Exit: ip}, nil
}

// config is the configuration of a provider of the world.
func (w *world) config(soldAs string) list.Config {
	return list.Config{Common: kind.Common{Name: "own", Env: kind.Env{Store: w.store}, Log: slog.New(slog.NewTextHandler(&locked{w: w}, nil))},
		Pool: list.Pool{SoldAs: soldAs}, File: w.file, Now: w.time, Probe: w.probe}
}

// locked writes the log of the world.
type locked struct{ w *world }

func (l *locked) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.log.Write(p)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func open[P ports.Provider](t *testing.T, c list.Config) P {
	t.Helper()
	p, err := list.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p.(P)
}

func (w *world) static() *list.Static   { return open[*list.Static](w.t, w.config("static")) }
func (w *world) dynamic() *list.Dynamic { return open[*list.Dynamic](w.t, w.config("dynamic")) }

// keep runs the provider's own work.
func (w *world) keep(p ports.Maintainer) {
	w.t.Helper()
	if err := p.Maintain(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// hosts returns n lines with hosts of their own.
func hosts(n int, tail string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "198.51.%d.%d:8080:user:secret%s\n", 100+i/250, 1+i%250, tail)
	}
	return b.String()
}

// order returns the n-th intent of a type.
func order(typ session.Type, n int) procurement.Intent {
	in := procurement.Intent{Key: fmt.Sprintf("ord_%d", n), SessionID: fmt.Sprintf("sess_%d", n), Type: typ, Quantity: 1}
	if typ == session.Static {
		in.Days = 30
	}
	return in
}

// buy orders, and fails the test if that is refused.
func (w *world) buy(p ports.Provider, in procurement.Intent) procurement.Delivery {
	w.t.Helper()
	d, err := p.Order(w.t.Context(), in)
	if err != nil {
		w.t.Fatalf("order %s: %v", in.Key, err)
	}
	return d
}

// refused checks the class of an order that is refused.
func (w *world) refused(p ports.Provider, in procurement.Intent, want procurement.Class) {
	w.t.Helper()
	if d, err := p.Order(w.t.Context(), in); procurement.ClassOf(err) != want {
		w.t.Errorf("order %s: %+v, %v, want %s", in.Key, d.IPs, err, want)
	}
}
