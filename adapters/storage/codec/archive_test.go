package codec_test

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentproxy/adapters/storage/codec"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

func TestAnArchiveIsReadBack(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 15, 12, 0, 0, 1000, time.UTC)
	full := codec.Archived{Health: []byte{0, 255, 7}, Worker: worker.Worker{ID: 1 << 40, Name: "a_9",
		Settings: worker.Settings{Location: session.Location{Country: "US", City: "New-York"}, TTL: 90 * time.Second, Strict: true,
			Unique: true, MaxBytes: math.MaxInt64},
		Exit: session.Exit{IP: netip.MustParseAddr("2001:db8::7")}, Turn: 3, AssignedAt: at.Add(-time.Hour), Lost: true,
		Changeable: true, Rotations: 2, LastError: worker.Failure{At: at.Add(time.Second), Code: "TARGET_TIMEOUT"},
		Usage: worker.Usage{Up: math.MaxInt64, Down: 1, Connections: 2}, CreatedAt: at, LastUsedAt: at}}
	plain := codec.Archived{Worker: worker.Worker{ID: 7, Name: "B"}}
	for _, flag := range []func(*codec.Archived){
		func(a *codec.Archived) { a.Strict = false }, func(a *codec.Archived) { a.Unique = false },
		func(a *codec.Archived) { a.Lost = false }, func(a *codec.Archived) { a.Changeable = false },
		func(a *codec.Archived) { a.Exit.IP = netip.MustParseAddr("192.0.2.1") }, func(*codec.Archived) {},
	} {
		changed := full
		flag(&changed)
		want := []codec.Archived{changed, plain, full}
		got, err := codec.DecodeArchive(codec.AppendArchive(nil, want))
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%v:\n%s", err, diff)
		}
	}
	whole := codec.AppendArchive(nil, []codec.Archived{full, plain})
	for n := range whole {
		if got, err := codec.DecodeArchive(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes: %+v", n, len(whole), got)
		}
	}
	whole[0]++
	if _, err := codec.DecodeArchive(whole); err == nil {
		t.Error("an unknown version is read")
	}
}
