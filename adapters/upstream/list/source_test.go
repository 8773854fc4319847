package list_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/upstream/list"
)

// shop serves a list, and counts the requests.
type shop struct {
	mu     sync.Mutex
	text   string
	status int
	calls  []string
}

func (s *shop) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	etag := fmt.Sprintf("%q", fmt.Sprint(len(s.text)))
	s.calls = append(s.calls, r.URL.Path+" "+r.Header.Get("If-None-Match")+" "+r.Header.Get("If-Modified-Since"))
	switch {
	case s.status == http.StatusFound:
		rw.Header().Set("Location", "/elsewhere")
		rw.WriteHeader(s.status)
	case s.status != 0:
		rw.WriteHeader(s.status)
	case r.Header.Get("If-None-Match") == etag:
		rw.WriteHeader(http.StatusNotModified)
	default:
		rw.Header().Set("ETag", etag)
		rw.Header().Set("Last-Modified", "Sun, 22 Nov 2026 10:00:00 GMT")
		fmt.Fprint(rw, s.text)
	}
}

func (s *shop) set(text string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.status = text, status
}

func (s *shop) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

func TestAURLIsLoadedAgainAfterItsPeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1")
	s := &shop{text: "198.51.100.1:1\r\n198.51.100.2:1\r\n"}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := w.config("static")
	c.File, c.URL, c.Reload = "", server.URL+"/token-hunter2/list", 10*time.Minute
	p := open[*list.Static](t, c)
	listed := func(want, calls int) {
		t.Helper()
		w.keep(p)
		if got := p.Stock()["listed"]; got != want || s.count() != calls {
			t.Errorf("%d are listed after %d calls, want %d after %d", got, s.count(), want, calls)
		}
	}
	if s.count() != 0 {
		t.Error("the list was loaded before its first use")
	}
	listed(2, 1)
	w.advance(9 * time.Minute)
	listed(2, 1)
	w.advance(time.Minute)
	listed(2, 2) // not modified
	if got := s.calls[1]; !strings.HasSuffix(got, "\"32\" Sun, 22 Nov 2026 10:00:00 GMT") {
		t.Errorf("the second call was %s", got)
	}
	// After a failure it is tried each minute, and the last good list stays.
	for i, bad := range []struct {
		text   string
		status int
		log    string
	}{
		{"", 500, "500 Internal Server Error"}, {"", 403, "403 Forbidden"}, {"", 302, "302 Found"},
		{"hunter2 hunter2 hunter2", 0, "the list: line 1"}, {"\n", 0, "the list: has no proxy"},
		{strings.Repeat("#", list.MaxBytes+1), 0, "longer than"},
	} {
		s.set(bad.text, bad.status)
		if w.advance(time.Minute); i == 0 {
			w.advance(9 * time.Minute)
		}
		listed(2, 3+i)
		if !strings.Contains(w.logged(), bad.log) {
			t.Errorf("the log has no %q: %s", bad.log, w.logged())
		}
	}
	s.set("198.51.100.3:1\n", 0)
	w.advance(time.Minute)
	listed(1, 9)
	server.Close()
	w.advance(10 * time.Minute)
	listed(1, 9)
	if strings.Contains(w.logged(), "hunter2") || strings.Count(w.logged(), "the last good one stays") != 7 {
		t.Errorf("the log is %s", w.logged())
	}
}

func TestProbesAreMadeWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "198.51.100.1:1\n198.51.100.2:1\n")
	w.exit("198.51.100.2", "")
	p := w.static()
	tried := func(good, bad int) {
		t.Helper()
		w.keep(p)
		if w.tried["198.51.100.1"] != good || w.tried["198.51.100.2"] != bad {
			t.Errorf("the probes are %v, want %d and %d", w.tried, good, bad)
		}
	}
	tried(1, 1)
	tried(1, 1)
	w.advance(5 * time.Second) // a line that fails is tried again soon, and ever more seldom
	tried(1, 2)
	w.advance(9 * time.Second)
	tried(1, 2)
	w.advance(time.Second)
	tried(1, 3)
	w.advance(10 * time.Minute)
	tried(2, 4)
	// What is in the list as before keeps what is known of it; another password does not.
	w.write("198.51.100.1:1\n198.51.100.2:1\n198.51.100.3:1\n")
	tried(2, 4)
	w.write("198.51.100.1:1:bob:secret\n198.51.100.2:1\n198.51.100.3:1\n")
	tried(3, 4)
	w.write("198.51.100.1:1:bob:other\n198.51.100.2:1\n198.51.100.3:1\n")
	tried(4, 4)
}
