package gateway_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

// gone is the answer of a seller that has no exit for a strict session any more.
func gone(c net.Conn) {
	_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
}

// attempts returns how often a seller was asked for a target.
func (s *seller) attempts(target string) (n int) {
	asked, _ := s.targets()
	for _, t := range asked {
		if t == target {
			n++
		}
	}
	return n
}

// sellsWorkers gives a session workers behind a seller that reports lost exits, and the echo that is
// tried through it.
func sellsWorkers(t *testing.T) (w *world, s *seller, id, echoes string) {
	s, echoes = newSeller(t, "", ""), echo(t)
	w = begin(t, newCore(t), func(c *setup) { c.PublicEchoURL = "http://" + echoes })
	id = w.add(1, 0)
	hop := s.endpoint(session.HTTP)
	hop.LostStatus = http.StatusBadGateway
	w.sessions[id].hop = &hop
	return w, s, id, echoes
}

func TestASellerLosesTheExitOfAStrictWorker(t *testing.T) {
	t.Parallel()
	w, s, id, _ := sellsWorkers(t)
	target := peers(t)
	if status, _ := w.as(id, "-session-a-strict", target); status != 200 {
		t.Fatal(status)
	}
	s.answers(gone)
	for range 2 {
		if status, _ := w.as(id, "-session-a", target); status != 503 {
			t.Errorf("without its exit: %d", status)
		}
	}
	s.answers(nil)
	if status, _ := w.as(id, "-session-a", target); status != 503 {
		t.Errorf("until it is rotated: %d", status)
	}
	for _, o := range w.noted(3)[:3] {
		if o.Code != "EXIT_LOST" || o.Worker != "a" || o.Retryable {
			t.Errorf("observed %+v", o)
		}
	}
	before := len(s.usersOf(t))
	w.edit(id, "a", func(x *worker.Worker) { *x = x.Move(session.Exit{}, time.Now()) })
	w.Changed(id)
	if status, _ := w.as(id, "-session-a", target); status != 200 {
		t.Errorf("after its rotation: %d", status)
	}
	if users := s.usersOf(t); users[0] == users[before] {
		t.Errorf("the lost exit is asked for again: %v", users)
	}
}

// usersOf returns the user names that came, at least one.
func (s *seller) usersOf(t *testing.T) []string {
	t.Helper()
	_, users := s.targets()
	if len(users) == 0 {
		t.Fatal("no connection came")
	}
	return users
}

// By plain HTTP it is the same.
func TestASellerLosesTheExitOfAStrictWorkerByPlainHTTP(t *testing.T) {
	t.Parallel()
	w, s, id, _ := sellsWorkers(t)
	s.answers(gone)
	c := w.dial()
	_, _ = io.WriteString(c, "GET http://"+peers(t)+"/ HTTP/1.1\r\nHost: x\r\n"+basic(user(id, 0)+"-session-a-strict", password(id))+"\r\n")
	if res, body := response(t, c); res.StatusCode != 503 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// A refusal of one target is the target's fault, and a worker that is not strict gets another exit.
func TestARefusedTargetIsNoLostExit(t *testing.T) {
	t.Parallel()
	w, s, id, echoes := sellsWorkers(t)
	const closed = "127.0.0.1:1"
	for range 3 {
		if status, _ := w.as(id, "-session-a-strict", closed); status != 502 {
			t.Errorf("a target that is closed: %d", status)
		}
	}
	if n := s.attempts(echoes); n != 1 {
		t.Errorf("the echo was tried %d times, want once in ten seconds", n)
	}
	if status, _ := w.as(id, "-session-a", peers(t)); status != 200 {
		t.Errorf("another target: %d", status)
	}
	s.answers(gone)
	if status, _ := w.as(id, "-session-b", closed); status != 502 {
		t.Errorf("without its exit: %d", status)
	}
	s.answers(nil)
	if status, _ := w.as(id, "-session-b", peers(t)); status != 200 {
		t.Errorf("with another exit: %d", status)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lostExits != 1 || w.sessions[id].workers["b"].Turn != 1 {
		t.Errorf("%d exits were lost", w.lostExits)
	}
}

// A name that is refused is in no event, so that made-up names take no memory.
func TestARefusedNameIsInNoEvent(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), echo(t)
	w.addWorkers(id, loopbacks, nil)
	w.mu.Lock()
	w.mostWorkers = 1
	w.mu.Unlock()
	if status, _ := w.as(id, "-session-a", target); status != 200 {
		t.Fatal(status)
	}
	if status, _ := w.as(id, "-session-b", target); status != 429 {
		t.Fatal(status)
	}
	if status, _ := w.as(id, "-country-xx-session-c", target); status != 400 {
		t.Fatal(status)
	}
	for _, o := range w.noted(2) {
		if o.Worker != "" && o.Worker != "a" {
			t.Errorf("observed %+v", o)
		}
	}
}
