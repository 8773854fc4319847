package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/domain/worker"
)

// peers is a target that answers with the client's address, by tunnel and by plain HTTP.
func peers(t testing.TB) string {
	l := listen(t)
	go serve(l, func(c net.Conn) {
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		for r := bufio.NewReader(c); ; {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(host), host)
		}
	})
	return l.Addr().String()
}

// as returns the status of CONNECT with words behind the user name, and the tunnel.
func (w *world) as(id, words, target string) (int, *net.TCPConn) {
	w.t.Helper()
	c := w.dial()
	return w.connectAs(c, basic(user(id, 0)+words, password(id)), target), c
}

// seenFrom returns the exit that a new tunnel has.
func (w *world) seenFrom(id, words, target string) string {
	w.t.Helper()
	status, c := w.as(id, words, target)
	if status != 200 {
		w.t.Fatalf("%s: %d", words, status)
	}
	defer c.Close()
	return seen(w.t, c)
}

// seen returns the exit of a tunnel.
func seen(t testing.TB, c net.Conn) string {
	t.Helper()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_, body := response(t, c)
	return body
}

var loopbacks = []string{"127.0.0.11", "127.0.0.12", "127.0.0.13"}

func TestAWorkerKeepsItsExit(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), peers(t)
	w.addWorkers(id, loopbacks, nil)
	first, other := w.seenFrom(id, "-session-w1", target), w.seenFrom(id, "-SESSION-w2", target)
	if first == other || first == "127.0.0.2" || other == "127.0.0.2" {
		t.Errorf("the workers leave from %s and %s", first, other)
	}
	for range 3 {
		if again := w.seenFrom(id, "-session-w1", target); again != first {
			t.Errorf("from %s after %s", again, first)
		}
	}
	if own := w.seenFrom(id, "", target); own != "127.0.0.2" {
		t.Errorf("the session leaves from %s", own)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used != 2 {
		t.Errorf("the core was asked %d times for 2 workers", w.used)
	}
}

func TestAChangedWorkerIsReadAgain(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), peers(t)
	w.addWorkers(id, loopbacks, nil)
	first := w.seenFrom(id, "-session-w1", target)
	status, open := w.as(id, "-session-w1", target)
	if status != 200 {
		t.Fatal(status)
	}
	w.edit(id, "w1", func(x *worker.Worker) { *x = x.Move(w.sessions[id].exitOf(2), time.Now()) })
	w.Changed(id)
	if got := w.seenFrom(id, "-session-w1", target); got != loopbacks[2] {
		t.Errorf("a new tunnel leaves from %s", got)
	}
	if got := seen(t, open); got != first {
		t.Errorf("the open tunnel leaves from %s", got)
	}
}

func TestAnExitWhoseTimeIsOverIsReplaced(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Now()
	w := begin(t, newCore(t), func(s *setup) {
		s.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	id, target := w.add(1, 0, "127.0.0.2"), peers(t)
	w.addWorkers(id, loopbacks, nil)
	first := w.seenFrom(id, "-session-w1-ttl-10m", target)
	w.edit(id, "w1", func(x *worker.Worker) { x.AssignedAt = x.AssignedAt.Add(-11 * time.Minute) })
	if got := w.seenFrom(id, "-session-w1", target); got != first {
		t.Errorf("from %s before the time is over", got)
	}
	mu.Lock()
	now = now.Add(11 * time.Minute)
	mu.Unlock()
	if got := w.seenFrom(id, "-session-w1", target); got == first {
		t.Errorf("still from %s after its time", got)
	}
}

func TestEveryConnectionOfAPlaceHasAnotherExit(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), peers(t)
	w.addWorkers(id, loopbacks, nil)
	last, distinct := "", map[string]bool{}
	for range 30 {
		got := w.seenFrom(id, "-rotate", target)
		if got == last {
			t.Fatalf("%s twice in a row", got)
		}
		last, distinct[got] = got, true
	}
	if len(distinct) != len(loopbacks) {
		t.Errorf("%d exits of %d", len(distinct), len(loopbacks))
	}
	// Each plain request on one kept connection too.
	c := w.dial()
	r := bufio.NewReader(c)
	for range 10 {
		fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: x\r\n%s\r\n", target, basic(user(id, 0)+"-country-de", password(id)))
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		if string(body) == last {
			t.Fatalf("%s twice in a row", body)
		}
		last = string(body)
	}
}

func TestARefusedWorkerIsExplained(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), echo(t)
	w.addWorkers(id, loopbacks, map[string]int64{"spent": 10, "w1": 0, "lost": 0})
	w.edit(id, "spent", func(x *worker.Worker) { x.Usage.Up = 10 })
	w.edit(id, "lost", func(x *worker.Worker) { x.Lost, x.Strict = true, true })
	for words, want := range map[string]struct {
		status int
		code   string
		fix    string
	}{
		"-":                     {400, "USERNAME_PARAMETER_INVALID", worker.Grammar},
		"-sesion-a":             {400, "USERNAME_PARAMETER_INVALID", `"sesion"`},
		"-session-a-rotate":     {400, "USERNAME_PARAMETER_INVALID", `"rotate"`},
		"-country-xx-session-a": {400, "USERNAME_PARAMETER_INVALID", `"country-xx"`},
		"-session-w1-ttl-10m":   {409, "WORKER_DIFFERS", "remove"},
		"-session-spent":        {402, "WORKER_TRAFFIC_EXHAUSTED", "another worker"},
		"-session-lost":         {503, "EXIT_LOST", "rotate"},
	} {
		c := w.dial()
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\n%s\r\n", target, basic(user(id, 0)+words, password(id)))
		res, body := response(t, c)
		var answer struct {
			Code     string `json:"code"`
			HowToFix string `json:"how_to_fix"`
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || res.StatusCode != want.status || answer.Code != want.code ||
			!strings.Contains(answer.HowToFix, want.fix) {
			t.Errorf("%s: %d %s", words, res.StatusCode, body)
		}
	}
	if n := len(w.noted(7)); n != 7 {
		t.Errorf("%d events of 7 refusals", n)
	}
	for _, o := range w.observed() {
		if named := o.Code != "USERNAME_PARAMETER_INVALID"; named != (o.Worker != "") && o.Worker != "a" {
			t.Errorf("the event %s is of the worker %q", o.Code, o.Worker)
		}
	}
}

// A name that is not the base and words is a wrong credential, whatever the words are.
func TestWordsBehindAWrongBase(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), echo(t)
	w.addWorkers(id, loopbacks, nil)
	for _, name := range []string{user(id, 0) + "_session-a", "x" + user(id, 0) + "-session-a", user(id, 7) + "-session-a", "-session-a"} {
		if status := w.connectAs(w.dial(), basic(name, password(id)), target); status != 407 {
			t.Errorf("%s: %d", name, status)
		}
	}
	if status := w.connectAs(w.dial(), basic(user(id, 0)+"-session-a", "wrong"), target); status != 407 {
		t.Errorf("a wrong password: %d", status)
	}
	if seen := w.observed(); len(seen) != 1 || seen[0].Type != "auth_failed" || seen[0].SessionID != id {
		t.Errorf("of the wrong password alone were observed %+v", seen)
	}
}

// The password decides about 407 alone: whatever is behind the base, the answer to a right one is
// what is wrong with the words.
func TestGeneratedNamesAreNever407(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), peers(t)
	w.addWorkers(id, loopbacks, nil)
	r := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"-country-de", "-city-berlin", "-session-a", "-session-b", "-ttl-10s", "-strict", "-rotate", "-x", "-", "-ttl-1d", "--"}
	seen := map[int]int{}
	for range 300 {
		var words string
		for range 1 + r.IntN(4) {
			words += pieces[r.IntN(len(pieces))]
		}
		status, c := w.as(id, words, target)
		_ = c.Close()
		seen[status]++
	}
	for status := range seen {
		if status != 200 && status != 400 && status != 409 {
			t.Errorf("%d answers of %d", seen[status], status)
		}
	}
	if seen[200] == 0 || seen[400] == 0 {
		t.Errorf("%v", seen)
	}
}

func TestSOCKSTakesWords(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), peers(t)
	w.addWorkers(id, loopbacks, nil)
	for _, tc := range []struct {
		words string
		reply byte
	}{{"-session-w1", 0}, {"-rotate", 0}, {"-session-w1-strict", 2}, {"-bad", 2}} {
		words := tc.words
		status, reply, c := w.socksAs(user(id, 0)+words, password(id), target)
		if status != 0 || reply != tc.reply {
			t.Errorf("%s: status %d, reply %d", words, status, reply)
		}
		if tc.reply == 0 && !strings.HasPrefix(seen(t, c), "127.0.0.1") {
			t.Errorf("%s leaves from another exit", words)
		}
	}
}

func TestTheTunnelsOfAWorker(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(s *setup) { s.Tunnels, s.SessionTunnels = 10, 130 })
	id, target := w.add(1, 0, "127.0.0.2"), echo(t)
	w.addWorkers(id, loopbacks, nil)
	open := func(words string, n int) (opened int) {
		for range n {
			status, _ := w.as(id, words, target)
			if status == 200 {
				opened++
			} else if status != 429 {
				t.Fatalf("%s: %d", words, status)
			}
		}
		return opened
	}
	if n := open("", 12); n != 10 {
		t.Errorf("%d tunnels of a session without workers", n)
	}
	// A worker in use brings 64 places, which it may have all.
	if n := open("-session-a", 70); n != 54 {
		t.Errorf("%d tunnels of the first worker beside 10 of the session", n)
	}
	if n := open("-session-b", 70); n != 64 {
		t.Errorf("%d tunnels of the second worker", n)
	}
	if n := open("-session-c", 10); n != 2 {
		t.Errorf("%d tunnels up to the ceiling", n)
	}
}

func TestARemovedWorkerIsCut(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), peers(t)
	w.addWorkers(id, loopbacks, nil)
	_, removed := w.as(id, "-session-a", target)
	_, other := w.as(id, "-session-b", target)
	w.mu.Lock()
	delete(w.sessions[id].workers, "a")
	w.mu.Unlock()
	w.Changed(id)
	if _, err := removed.Read(make([]byte, 1)); err == nil {
		t.Error("the tunnel of the removed worker is open")
	}
	if got := seen(t, other); got == "" {
		t.Error("the other worker was cut")
	}
	// The name makes another worker.
	_ = w.seenFrom(id, "-session-a", target)
}

// socksAs returns the status of the password and the reply to a request for a target, by RFC 1928 and
// RFC 1929.
func (w *world) socksAs(user, password, target string) (status, reply byte, c net.Conn) {
	w.t.Helper()
	conn := w.dial()
	at := netip.MustParseAddrPort(target)
	ask := func(want int, b ...byte) []byte {
		_, _ = conn.Write(b)
		answer := make([]byte, want)
		if _, err := io.ReadFull(conn, answer); err != nil {
			w.t.Fatalf("%s: %v", user, err)
		}
		return answer
	}
	ask(2, 5, 1, 2)
	auth := append([]byte{1, byte(len(user))}, user...)
	auth = append(append(auth, byte(len(password))), password...)
	if status = ask(2, auth...)[1]; status != 0 {
		return status, 0, conn
	}
	ip := at.Addr().As4()
	request := append([]byte{5, 1, 0, 1}, ip[:]...)
	return 0, ask(10, append(request, byte(at.Port()>>8), byte(at.Port()))...)[1], conn
}
