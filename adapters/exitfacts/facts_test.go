package exitfacts_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"golang.org/x/net/dns/dnsmessage"

	"agentproxy/adapters/exitfacts"
	"agentproxy/domain/exit"
)

func text(s string) mmdbtype.String { return mmdbtype.String(s) }

// named has a name in the form of GeoLite2: the English one among others.
func named(english string) mmdbtype.Map {
	return mmdbtype.Map{"names": mmdbtype.Map{"de": text("nicht " + english), "en": text(english)}}
}

// database writes a MaxMind database with an entry for each network.
func database(t testing.TB, kind string, entries map[string]mmdbtype.Map) string {
	t.Helper()
	w, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: kind, RecordSize: 24, IncludeReservedNetworks: true,
		BuildEpoch: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	for network, entry := range entries {
		_, n, err := net.ParseCIDR(network)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Insert(n, entry); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "facts.mmdb")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := w.WriteTo(f); err != nil {
		t.Fatal(err)
	}
	return name
}

// The fields of GeoLite2 City and GeoLite2 ASN, as MaxMind documents them.
func city(country, region, city, timezone string) mmdbtype.Map {
	return mmdbtype.Map{"country": mmdbtype.Map{"iso_code": text(country)}, "city": named(city),
		"location":     mmdbtype.Map{"time_zone": text(timezone), "latitude": mmdbtype.Float64(54.7)},
		"subdivisions": mmdbtype.Slice{named(region), named("a smaller one")}}
}

func asn(number uint32, name string) mmdbtype.Map {
	return mmdbtype.Map{"autonomous_system_number": mmdbtype.Uint32(number), "autonomous_system_organization": text(name)}
}

func open(t testing.TB, name string) exitfacts.Source {
	t.Helper()
	d, err := exitfacts.OpenDatabase(name)
	if err != nil {
		t.Fatal(err)
	}
	return exitfacts.Source{File: d.Lookup}
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func TestDatabases(t *testing.T) {
	t.Parallel()
	places := open(t, database(t, "GeoLite2-City", map[string]mmdbtype.Map{
		"127.0.0.0/24": city("LT", "Vilnius County", "Vilnius", "Europe/Vilnius"), "2001:db8::/32": {"country": mmdbtype.Map{"iso_code": text("ZZ")}}}))
	networks := open(t, database(t, "GeoLite2-ASN", map[string]mmdbtype.Map{"127.0.0.5/32": asn(64500, "Example Net")}))
	other := open(t, database(t, "GeoLite2-City", map[string]mmdbtype.Map{"127.0.0.5/32": city("TH", "Bangkok", "Bangkok", "Asia/Bangkok")}))

	f := exitfacts.New([]exitfacts.Source{places, networks})
	want := exit.Known{Country: "LT", Region: "Vilnius County", City: "Vilnius", Timezone: "Europe/Vilnius", ASN: 64500, ASName: "Example Net"}
	for _, a := range []string{"127.0.0.5", "::ffff:127.0.0.5"} {
		if got := f.Facts(t.Context(), addr(a)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %+v, want %+v", a, got, want)
		}
	}
	for _, a := range []string{"127.0.1.5", "2001:db8::1", "::1"} {
		if got := f.Facts(t.Context(), addr(a)); got.Country != "" || got.Listed != nil {
			t.Errorf("%s, of which nothing is known: %+v", a, got)
		}
	}
	f.Replace([]exitfacts.Source{places, other})
	if got := f.Facts(t.Context(), addr("127.0.0.5")); got.Country != "LT" || !got.Disputed || got.ASN != 0 {
		t.Errorf("two databases that differ, after a reload: %+v", got)
	}
}

func TestDatabasesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(database(t, "GeoLite2-City", map[string]mmdbtype.Map{"127.0.0.0/24": city("LT", "a", "b", "c")}))
	if err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string][]byte{"empty": {}, "text": []byte("127.0.0.0/8 country=US\n"), "the first half": whole[:len(whole)/2]} {
		name := filepath.Join(t.TempDir(), "facts.mmdb")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := exitfacts.OpenDatabase(name); err == nil || !strings.Contains(err.Error(), "not a MaxMind database") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := exitfacts.OpenDatabase(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was opened")
	}
	d, err := exitfacts.OpenDatabase(database(t, "GeoLite2-ASN", nil))
	if err != nil || d.Built().Format(time.DateOnly) != "2026-11-01" {
		t.Errorf("built at %v, %v", d.Built(), err)
	}
}

// lister is a DNS server that answers for zones of lists, as RFC 5782 describes. It is written from that document alone.
type lister struct {
	address string
	asked   atomic.Int64
	mu      sync.Mutex
	a       map[string][4]byte // answers by name; what is missing does not exist
	silent  map[string]bool
}

func listServer(t *testing.T) *lister {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &lister{address: conn.LocalAddr().String(), a: map[string][4]byte{}, silent: map[string]bool{}}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			if reply, ok := s.reply(m); ok {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return s
}

func (s *lister) reply(m dnsmessage.Message) ([]byte, bool) {
	s.asked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := m.Questions[0]
	name := strings.TrimSuffix(q.Name.String(), ".")
	if s.silent[name] {
		return nil, false
	}
	r := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	if a, ok := s.a[name]; ok {
		r.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 60},
			Body: &dnsmessage.AResource{A: a}}}
	} else {
		r.RCode = dnsmessage.RCodeNameError
	}
	out, err := r.Pack()
	return out, err == nil
}

func (s *lister) set(name string, a [4]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.a[name] = a
}

func (s *lister) list(label string) exitfacts.Source {
	return exitfacts.Source{List: exitfacts.List{Zone: label + ".example", Label: label, Resolver: s.address}}
}

func TestLists(t *testing.T) {
	t.Parallel()
	s := listServer(t)
	s.set("5.0.0.127.bad.example", [4]byte{127, 0, 0, 2})
	s.set("7.0.0.127.bad.example", [4]byte{127, 255, 255, 254})
	s.set("1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.worse.example", [4]byte{127, 0, 0, 4})
	f := exitfacts.New([]exitfacts.Source{s.list("bad"), s.list("worse")})
	for a, want := range map[string][]string{"127.0.0.5": {"bad"}, "127.0.0.6": {}, "127.0.0.7": nil, "2001:db8::1": {"worse"}} {
		if got := f.Facts(t.Context(), addr(a)).Listed; !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s: got %#v, want %#v", a, got, want)
		}
	}
	// What was answered is kept, and a refusal is not.
	asked := s.asked.Load()
	f.Facts(t.Context(), addr("::ffff:127.0.0.5"))
	if n := s.asked.Load() - asked; n != 0 {
		t.Errorf("%d questions about an address that was asked about", n)
	}
	s.set("7.0.0.127.bad.example", [4]byte{127, 0, 0, 2})
	if got := f.Facts(t.Context(), addr("127.0.0.7")).Listed; !slices.Equal(got, []string{"bad"}) {
		t.Errorf("after a refusal: %v", got)
	}
}

// A list that does not answer leaves open whether an address is on it, and holds no caller for longer than its time.
func TestAListThatIsSilent(t *testing.T) {
	t.Parallel()
	s := listServer(t)
	s.silent["5.0.0.127.bad.example"], s.silent["6.0.0.127.bad.example"] = true, true
	s.set("6.0.0.127.worse.example", [4]byte{127, 0, 0, 2})
	f := exitfacts.New([]exitfacts.Source{s.list("bad"), s.list("worse"), {File: func(netip.Addr) exit.Known { return exit.Known{Country: "US"} }}})
	var wg sync.WaitGroup // both wait for the time of a question
	wg.Go(func() {
		if got := f.Facts(t.Context(), addr("127.0.0.5")); got.Listed != nil || got.Country != "US" {
			t.Errorf("one list is silent: %+v", got)
		}
	})
	wg.Go(func() {
		if got := f.Facts(t.Context(), addr("127.0.0.6")).Listed; !slices.Equal(got, []string{"worse"}) {
			t.Errorf("one list is silent, and the other has it: %v", got)
		}
	})
	wg.Wait()
}

// The bound of a look-up in files is 2 µs on a quiet machine.
func BenchmarkFacts(b *testing.B) {
	f := exitfacts.New([]exitfacts.Source{
		open(b, database(b, "GeoLite2-City", map[string]mmdbtype.Map{"127.0.0.0/24": city("LT", "Vilnius County", "Vilnius", "Europe/Vilnius")})),
		open(b, database(b, "GeoLite2-ASN", map[string]mmdbtype.Map{"127.0.0.5/32": asn(64500, "Example Net")}))})
	a := addr("127.0.0.5")
	b.ReportAllocs()
	for b.Loop() {
		f.Facts(b.Context(), a)
	}
}
