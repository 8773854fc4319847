package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// BenchmarkGuards alternates between a gateway without bounds, one with the limits of connections
// and targets, the operator's policy and the exit log, and a relay that only copies. It reports the
// medians of the processor's time of a tunnel, of a tunnel of one of a hundred workers and of a plain
// request, in which client, gateway and target are, and the time with all of them as a part of the
// time without. What the exit log keeps is stored at the end of each part, so that it counts for the
// tunnels that it is of.
func BenchmarkGuards(b *testing.B) {
	edit, flush := guards(b)
	bare, _ := metered(b, newCore(b), nil)
	guarded, _ := metered(b, newCore(b), edit)
	relay, web := copier(b), answersOK(b)
	var targets []string // in turn, because a closed tunnel keeps the port to its target for a minute
	for range 8 {
		targets = append(targets, echo(b))
	}
	id := bare.add(1, 0)
	guarded.add(1, 0)
	var fleet string // a session with workers, of the same id in both
	for _, w := range []*world{bare, guarded} {
		fleet = w.add(2, 0, "127.0.0.2")
		w.addWorkers(fleet, loopbacks, nil)
	}
	as := []string{basic(user(id, 0), password(id))}
	stored := func(run func()) func() {
		return func() {
			run()
			if err := flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
	compare := func(b *testing.B, each int, parts map[string]func()) {
		for _, run := range parts {
			run() // first uses are not measured
		}
		medians := alternate(b, each, parts)
		b.ReportMetric(medians["guarded"]/medians["bare"], "of-bare")
	}
	all := func(b *testing.B, as []string, each int) map[string]func() {
		part := func(addr string) func() {
			turn := 0
			return func() {
				turn++
				tunnels(b, addr, targets[turn%len(targets)], as, each)
			}
		}
		return map[string]func(){"bare": part(bare.addr), "guarded": stored(part(guarded.addr)), "relay": part(relay)}
	}
	b.Run("tunnels", func(b *testing.B) {
		const each = 2000 // in about a second, which is how often the log is stored
		compare(b, each, all(b, as, each))
	})
	b.Run("workers", func(b *testing.B) {
		const each, members = 2000, 100
		var names []string
		for i := range members {
			names = append(names, basic(fmt.Sprintf("%s-session-w%d", user(fleet, 0), i+1), password(fleet)))
		}
		compare(b, each, all(b, names, each))
	})
	b.Run("requests", func(b *testing.B) {
		const each = 2000
		request := "GET http://" + web + "/ HTTP/1.1\r\nHost: x\r\n" + as[0] + "\r\n"
		part := func(addr string) func() {
			return func() {
				c, err := from("127.0.0.21").Dial("tcp", addr)
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				r := bufio.NewReader(c)
				for range each {
					_, _ = io.WriteString(c, request)
					res, err := http.ReadResponse(r, nil)
					if err != nil || res.StatusCode != http.StatusOK {
						b.Fatal(res, err)
					}
					_, _ = io.Copy(io.Discard, res.Body)
				}
			}
		}
		compare(b, each, map[string]func(){"bare": part(bare.addr), "guarded": stored(part(guarded.addr))})
	})
}
