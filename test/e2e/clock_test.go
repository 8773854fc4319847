package e2e_test

import (
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/test/campaign"
	"agentproxy/test/freeport"
	"agentproxy/test/pg"
)

// stepwise starts a server that sends as many bytes on a connection each time that the returned function is
// called, parts times.
func stepwise(t *testing.T, each, parts int) (address string, step func()) {
	t.Helper()
	steps := make(chan struct{}, parts)
	return listen(t, func(w io.Writer) {
		p := make([]byte, each)
		for range parts {
			<-steps
			if _, err := w.Write(p); err != nil {
				return
			}
		}
	}), func() { steps <- struct{}{} }
}

// A replica whose clock is wrong shares a database with the leader, whose clock is right. What it
// relays is metered to the byte, and both together stop at the limit.
func TestAReplicaWithAWrongClockMetersAllOfItsTraffic(t *testing.T) {
	t.Parallel()
	for _, off := range []string{"-20s", "10m", "-24h"}[:campaign.Rounds(1, 3)] {
		t.Run(off, func(t *testing.T) {
			t.Parallel()
			env := append(onPostgres(pg.Database(t)), "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")
			right := serve(t, env...)
			within(t, soon, "it leads", func() bool { status, _ := right.page("/readyz"); return status == 200 })
			wrong := &service{t: t, dir: t.TempDir(), api: freeport.Address(t), gateway: freeport.Address(t),
				admin: freeport.Address(t), env: append(slices.Clone(env), clockSkew+"="+off)}
			wrong.start()
			t.Cleanup(wrong.stop)

			key, _ := right.register("clocks")
			id := right.dynamic(key, "1")
			var delivered atomic.Int64
			var wg sync.WaitGroup
			const each, parts = 2_000_000, 5
			target, step := stepwise(t, each, parts)
			wg.Go(func() {
				if status, err := download(wrong.proxyAt(key, id), target, &delivered); status != 200 || err != nil {
					t.Errorf("the download: %d, %v", status, err)
				}
			})
			for n := range parts { // each part is reported while the tunnel is open
				step()
				within(t, soon, "the usage of a part", func() bool {
					return right.session(key, id).Usage.Traffic.DownloadBytes == int64(n+1)*each
				})
			}
			wg.Wait()
			right.must(200, "POST", "/sessions/"+id+"/terminate", key, "")
			right.settled(key, id, delivered.Load(), delivered.Load())

			const limit = 100_000_000 // the least that is sold
			small := right.dynamic(key, "0.1")
			delivered.Store(0)
			target = pour(t, 30_000_000)
			for i := range 8 {
				s := []*service{right, wrong}[i%2]
				proxy := s.proxyAt(key, small)
				wg.Go(func() { _, _ = download(proxy, target, &delivered) })
			}
			wg.Wait()
			if delivered.Load() > limit {
				t.Errorf("delivered %d bytes of %d", delivered.Load(), limit)
			}
			within(t, soon, "what was delivered is what was used", func() bool {
				return right.session(key, small).Usage.Traffic.UsedBytes == delivered.Load()
			})
			wrong.shows("agentproxy_gateway_leases_lost_total 0")
			wrong.logs("clock differs")
			if _, text := wrong.page("/metrics"); strings.Contains(text, "\nagentproxy_clock_skew_seconds 0\n") {
				t.Error("the metrics show no skew")
			}
			if out := right.log.String(); strings.Contains(out, "clock differs") {
				t.Errorf("the right one warns of its clock:\n%s", out)
			}
			right.verify()
		})
	}
}
