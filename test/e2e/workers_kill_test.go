package e2e_test

import (
	"flag"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
)

var fleet = flag.Int("workers.fleet", campaign.Rounds(8, 60), "how many workers are in use on both replicas when one is killed")

// workers lists the workers of a session by name.
func (s *service) workers(key, id string) map[string]apiclient.Worker {
	s.t.Helper()
	var page struct{ Items []apiclient.Worker }
	s.must(200, "GET", "/sessions/"+id+"/workers?page_size=100", key, "").into(s.t, &page)
	found := map[string]apiclient.Worker{}
	for _, w := range page.Items {
		found[w.Name] = w
	}
	return found
}

// as returns the proxy of a worker.
func as(proxy *url.URL, words string) *url.URL {
	p := *proxy
	password, _ := p.User.Password()
	p.User = url.UserPassword(p.User.Username()+words, password)
	return &p
}

// TestWorkersAddUpAfterAKill kills one of two replicas while workers are in use on both: what workers
// moved is what their session moved, and that is charged. Nothing moves from its exit.
func TestWorkersAddUpAfterAKill(t *testing.T) {
	t.Parallel()
	const each = 1_000_000
	both := replicas(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", outage)
	victim, lives := both[0], both[1]
	key, _ := victim.register("fleet")
	id, mixed := victim.dynamic(key, "1"), victim.dynamic(key, "1")
	target, goOn := halves(t, each)
	var delivered [2]atomic.Int64 // of the fleet, by replica
	var own, others atomic.Int64  // of the other session, at the replica that lives
	var wg sync.WaitGroup
	use := func(at *service, id, words string, to *atomic.Int64) {
		proxy := as(at.proxyAt(key, id), words)
		wg.Go(func() {
			status, err := downloadLater(proxy, target, to)
			if at == lives && (status != 200 || err != nil) {
				t.Errorf("%s at the replica that lives: %d, %v", words, status, err)
			}
		})
	}
	for i := range *fleet {
		for n, at := range both {
			use(at, id, fmt.Sprintf("-session-w%d", i), &delivered[n])
		}
	}
	use(lives, mixed, "", &own)
	use(lives, mixed, "-session-a", &others)
	use(lives, mixed, "-rotate", &own)
	var before map[string]apiclient.Worker
	within(t, soon, "the downloads of all workers run", func() bool {
		before = lives.workers(key, id)
		exits := 0
		for _, w := range before {
			if w.ExitIP != nil {
				exits++
			}
		}
		return exits == *fleet && delivered[0].Load() > each*int64(*fleet)/5 && delivered[1].Load() > each*int64(*fleet)/5
	})
	victim.kill()
	goOn()
	wg.Wait()
	for name, w := range lives.workers(key, id) {
		if was := before[name].ExitIP; w.ExitIP == nil || was == nil || *w.ExitIP != *was {
			t.Errorf("%s moved from %v to %v", name, text(was), text(w.ExitIP))
		}
	}
	for _, session := range []string{id, mixed} {
		lives.must(200, "POST", "/sessions/"+session+"/terminate", key, "")
	}
	lives.inherits(id, mixed)
	lives.settled(key, id, delivered[1].Load(), delivered[0].Load()+delivered[1].Load())
	lives.settled(key, mixed, 3*each, 3*each)
	sum := func(id string) (sum apiclient.Worker) {
		for _, w := range lives.workers(key, id) {
			sum.Usage.UsedBytes += w.Usage.UsedBytes
			sum.Usage.UploadBytes += w.Usage.UploadBytes
			sum.Usage.DownloadBytes += w.Usage.DownloadBytes
			sum.Usage.Connections += w.Usage.Connections
		}
		return sum
	}
	all, of := lives.session(key, id).Usage, sum(id).Usage
	if of.UsedBytes != all.Traffic.UsedBytes || of.UploadBytes != all.Traffic.UploadBytes ||
		of.DownloadBytes != all.Traffic.DownloadBytes || of.Connections != all.Connections {
		t.Errorf("workers used %+v, their session %+v", of, all)
	}
	if got := sum(mixed).Usage.UsedBytes; got != others.Load() || own.Load() != 2*each {
		t.Errorf("the worker beside the session's own use has %d bytes of %d, and the session %d of its own", got, others.Load(), own.Load())
	}
	t.Logf("%d workers used %d bytes of %d and %d delivered", *fleet, of.UsedBytes, delivered[0].Load(), delivered[1].Load())
	lives.verify()
	victim.start()
}

// TestAWorkersLimitHoldsAtTheOtherReplica uses a worker up at one replica: the other refuses it soon.
func TestAWorkersLimitHoldsAtTheOtherReplica(t *testing.T) {
	t.Parallel()
	const limit = 500_000
	both := sharedReplicas(t)
	key, _ := both[0].register("capped")
	id := both[0].dynamic(key, "1")
	both[0].must(201, "POST", "/sessions/"+id+"/workers", key, fmt.Sprintf(`{"names":["capped"],"max_bytes":%d}`, limit))
	tunnel(t, as(both[1].proxyAt(key, id), "-session-capped"), quiet(t))
	var delivered atomic.Int64
	if _, err := download(as(both[0].proxyAt(key, id), "-session-capped"), pour(t, 2*limit), &delivered); err != nil {
		t.Fatal(err)
	}
	if delivered.Load() != limit {
		t.Errorf("%d bytes were delivered of %d", delivered.Load(), limit)
	}
	target := pour(t, limit)
	var more atomic.Int64
	both[1].promised(2*time.Second, "the worker is used up at the other replica", func() bool {
		status, err := download(as(both[1].proxyAt(key, id), "-session-capped"), target, &more)
		return err == nil && status == 402
	})
	if status, err := downloadLater(as(both[1].proxyAt(key, id), "-session-free"), target, &more); status != 200 || err != nil {
		t.Errorf("another worker: %d, %v", status, err)
	}
	both[1].promised(2*time.Second, "the list shows that the worker is used up", func() bool {
		w := both[1].workers(key, id)["capped"]
		return w.Status == "exhausted" && w.Usage.UsedBytes >= limit
	})
	both[0].verify()
}
