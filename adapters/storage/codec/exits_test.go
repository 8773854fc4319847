package codec_test

import (
	"net/netip"
	"testing"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/domain/exitlog"
)

func exits() []exitlog.Connection {
	at := time.Date(2026, 5, 15, 12, 0, 0, 123456000, time.UTC)
	return []exitlog.Connection{
		{Number: 7, Agent: "agt_1", Session: "sess_1", Worker: "w1", Client: netip.MustParseAddrPort("192.0.2.1:40000"),
			Host: "shop.example", Target: netip.MustParseAddrPort("198.51.100.7:443"), Exit: netip.MustParseAddrPort("203.0.113.9:50123"),
			Opened: at, Closed: at.Add(time.Second), Seen: at.Add(2 * time.Second), Bytes: 1 << 40, End: exitlog.Finished},
		{Number: 8, Agent: "agt_1", Session: "sess_2", Client: netip.MustParseAddrPort("[2001:db8::1]:1"), Host: "shop.example",
			Target: netip.AddrPortFrom(netip.Addr{}, 80), Exit: netip.AddrPortFrom(netip.MustParseAddr("2001:db8::2"), 0),
			Seller: "royal", Token: "user-session-1", Opened: at.Add(-time.Hour), Seen: at},
		{Number: 9, Opened: at, Closed: at, Seen: at, End: exitlog.Idle},
	}
}

func TestExitsAreReadBackAsTheyWereWritten(t *testing.T) {
	var got []exitlog.Connection
	if err := codec.DecodeExits(codec.AppendExits(nil, exits()), func(c exitlog.Connection) { got = append(got, c) }); err != nil {
		t.Fatal(err)
	}
	want := exits()
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("read\n%+v, want\n%+v", got, want)
		}
	}
}

func FuzzDecodeExits(f *testing.F) {
	f.Add(codec.AppendExits(nil, exits()))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		_ = codec.DecodeExits(b, func(exitlog.Connection) { n++ })
		if n > codec.MaxExits {
			t.Errorf("%d connections of one chunk", n)
		}
	})
}
