package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/campaign"
)

// Five free accounts of one network have sessions with as many rules as they may, each with a tunnel, and then repeat
// the dearest calls. The program never takes 512 MiB, and goes on serving another agent. How long that one waits for
// an answer is checked in the campaign alone, in which nothing else uses the machine.
func TestFiveAccountsLeaveAReplicaItsMemory(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_DEV=false", "AGENTPROXY_ALLOW_NETWORKS=127.0.0.0/8", "AGENTPROXY_TARGET_RATE_PER_MINUTE_TRIAL=0",
		"AGENTPROXY_CONNECTIONS_PER_SECOND_TRIAL=0", "AGENTPROXY_TRIAL_PORTS=all", "AGENTPROXY_TRIAL_PER_NETWORK=6",
		"AGENTPROXY_CONNECTIONS_PER_SECOND=0", "AGENTPROXY_TARGET_RATE_PER_MINUTE=0", "GOGC=100") // the sixth is the customer's
	target := listens(t)
	key, proxy := s.customer("customer")
	var info struct {
		AgentID string `json:"agent_id"`
	}
	s.must(200, "GET", "/account/info", key, "").into(t, &info)
	if out, err := s.run("adjust", info.AgentID, "--amount", "10", "--reason", "paid"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.object("agent", "set-rate-limit", info.AgentID, "--per-minute", "0")
	start := peakMemory(t, s.cmd.Process.Pid)
	again := 0
	answers := func() time.Duration {
		began := time.Now()
		within(t, soon, "a tunnel and an answer for another agent", func() bool {
			again++
			c, _, status, err := connect(proxy, target)
			if err == nil {
				_ = c.Close()
			}
			r, failed := s.call(t.Context(), "GET", "/account/info", key, "")
			return err == nil && failed == nil && max(status, r.status) == http.StatusOK
		})
		again--
		return time.Since(began)
	}
	// median is of the answers until enough is true.
	median := func(enough func(answers int) bool) time.Duration {
		var all []time.Duration
		for !enough(len(all)) {
			all = append(all, answers())
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	quiet := median(func(answers int) bool { return answers == 50 })
	var keys []string
	var sessions [][]string
	for i := range 5 {
		k, _ := s.register(fmt.Sprint("stranger", i))
		keys, sessions = append(keys, k), append(sessions, nil)
	}
	for n := range campaign.Rounds(2, 200) {
		for i, k := range keys {
			body := fmt.Sprintf(`{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":0.1},"policy":{"deny":[%s]}}`, rules(i, n))
			var d apiclient.Session
			within(t, 2*soon, "a session", func() bool {
				r, err := s.call(t.Context(), "POST", "/sessions", k, body)
				if err == nil && r.status == http.StatusCreated {
					r.into(t, &d)
				}
				return d.SessionID != ""
			})
			sessions[i] = append(sessions[i], d.SessionID)
			p, err := url.Parse(d.Proxy.HTTPURL)
			if err != nil {
				t.Fatal(err)
			}
			if c, _, _, err := connect(p, target); err == nil {
				t.Cleanup(func() { _ = c.Close() })
			}
		}
	}
	held := peakMemory(t, s.cmd.Process.Pid)
	stop := make(chan struct{})
	var calls atomic.Int64
	var strangers sync.WaitGroup
	for i, k := range keys {
		strangers.Go(func() {
			for {
				for _, id := range sessions[i] {
					select {
					case <-stop:
						return
					default:
					}
					_, _ = s.call(t.Context(), "POST", "/sessions/"+id+"/workers", k, `{"count":1000}`)
					_, _ = s.call(t.Context(), "GET", "/sessions/"+id+"/workers?page_size=100", k, "")
					calls.Add(2)
				}
			}
		})
	}
	busy := median(func(int) bool { return calls.Load() >= int64(campaign.Rounds(20, 20_000)) })
	close(stop)
	strangers.Wait()
	peak := peakMemory(t, s.cmd.Process.Pid)
	t.Logf("the median of another agent's calls is %v, %v before, beside %d calls of strangers, %d of its calls were repeated; "+
		"memory in MiB: %d at the start, %d with their sessions, %d with their calls", busy, quiet, calls.Load(), again,
		start>>20, held>>20, peak>>20)
	if campaign.Rounds(0, 1) > 0 && busy > 3*quiet {
		t.Errorf("beside strangers another agent waits for %v, %v without them: more than three times as long", busy, quiet)
	}
	if peak >= 512<<20 {
		t.Errorf("the program took %d MiB", peak>>20)
	}
}

// rules are a hundred rules that no other session has.
func rules(agent, session int) string {
	var b bytes.Buffer
	for n := range 100 {
		fmt.Fprintf(&b, `,"%s.%d-%d-%d.example"`, strings.Repeat("a", 60), agent, session, n)
	}
	return b.String()[1:]
}

// peakMemory is the most that a process had in memory, in bytes.
func peakMemory(t *testing.T, pid int) (bytes int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("this system does not show the memory of a process")
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscanf(after, "%d kB", &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes << 10
}
