package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	socks "golang.org/x/net/proxy"

	"agentproxy/adapters/apiclient"
)

// workerSession is a session with workers and its proxy.
type workerSession struct {
	*service
	key, id string
	proxy   *url.URL
}

// exit returns the exit that a connection with words behind the user name has.
func (c workerSession) exit(words string) string {
	c.t.Helper()
	return c.exitOf(as(c.proxy, words).String())
}

// refused checks the answer to a connection with words behind the user name.
func (c workerSession) refused(words string, status int, code, fix string) {
	c.t.Helper()
	got, body := through(c.t, as(c.proxy, words).String(), "http://"+c.api+"/v1/ip")
	var answer struct {
		Code      string
		HowToFix  string `json:"how_to_fix"`
		Retryable bool
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || got != status || answer.Code != code ||
		!strings.Contains(answer.HowToFix, fix) || answer.Retryable {
		c.t.Errorf("%s: %d %s, want %d %s with %q", words, got, body, status, code, fix)
	}
}

// pool lists addresses of this host, of which the first half are for dynamic sessions.
func pool(first ...int) string {
	var list []string
	for _, n := range append(first, 91, 92, 93, 94) {
		list = append(list, fmt.Sprintf("127.0.0.%d", n))
	}
	return "AGENTPROXY_EXITS=" + strings.Join(list, ",")
}

// TestTheWordsOfAUserName walks through docs/workers.md against the program.
func TestTheWordsOfAUserName(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", pool(11, 12, 13, 14))
	key, _ := s.register("words")
	c := workerSession{service: s, key: key, id: s.dynamic(key, "1")}
	c.proxy = s.proxyAt(key, c.id)
	own, w07 := c.exit(""), c.exit("-session-w07")
	if again := c.exit("-SESSION-w07"); again != w07 || own == w07 {
		t.Errorf("w07 has %s and %s, the session %s", w07, again, own)
	}
	if other := c.exit("-session-W07-ttl-10S"); other == w07 {
		t.Errorf("W07 has the exit of w07, %s", other)
	}
	last := ""
	for range 20 {
		exit := c.exit("-rotate")
		if exit == last {
			t.Errorf("%s twice in a row", exit)
		}
		last = exit
	}
	if a, b := c.exit("-country-de"), c.exit("-COUNTRY-DE"); a == b {
		t.Errorf("a place alone gives %s twice in a row", a)
	}
	const form = "<base>[-country-<cc>[-city-<city>]](-session-<name>"
	for words, named := range map[string]string{
		"-":                          form,
		"-sesion-a":                  `"sesion"`,
		"-session-a-session-b":       `"session"`,
		"-session-a-strict-ttl-10m":  `"ttl"`,
		"-session-a-country-de":      `"country"`,
		"-city-berlin-session-a":     `"city"`,
		"-session-a-ttl-9s":          `"ttl-9s"`,
		"-session-a-ttl-25h":         `"ttl-25h"`,
		"-session-a-ttl-10":          `"ttl-10"`,
		"-session-a-rotate":          `"rotate"`,
		"-rotate-session-a":          `"session"`,
		"-rotate-strict":             `"strict"`,
		"-country-zz-session-a":      `"country-zz"`,
		"-session-a.b":               form,
		"-session-" + long(33):       form,
		"-country-deu-session-a":     `"country-deu"`,
		"-session-a-ttl-10m-ttl-10m": `"ttl"`,
	} {
		c.refused(words, 400, "USERNAME_PARAMETER_INVALID", named)
		c.refused(words, 400, "USERNAME_PARAMETER_INVALID", form)
	}
	c.exit("-session-" + long(32) + "-ttl-24h-strict")
	events := s.must(200, "GET", "/sessions/"+c.id+"/events?page_size=100", key, "")
	if !strings.Contains(string(events.body), "USERNAME_PARAMETER_INVALID") || !strings.Contains(string(events.body), `"worker":"w07"`) {
		within(t, soon, "the feed lists refused words and workers", func() bool {
			b := string(s.must(200, "GET", "/sessions/"+c.id+"/events?page_size=100", key, "").body)
			return strings.Contains(b, "USERNAME_PARAMETER_INVALID") && strings.Contains(b, `"worker":"w07"`)
		})
	}
	for words, reply := range map[string]string{"-session-a-rotate": "connection not allowed", "-session-w07-strict": "connection not allowed", "-session-w07": ""} {
		password, _ := c.proxy.User.Password()
		d, err := socks.SOCKS5("tcp", s.gateway, &socks.Auth{User: c.proxy.User.Username() + words, Password: password}, nil)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := d.Dial("tcp", s.api)
		if err == nil {
			conn.Close()
		}
		if (err != nil) != (reply != "") || err != nil && !strings.Contains(err.Error(), reply) {
			t.Errorf("SOCKS5, %s: %v", words, err)
		}
	}
	for _, words := range []string{"-session-w07-ttl-10m", "-session-w07-strict", "-country-de-session-w07"} {
		c.refused(words, 409, "WORKER_DIFFERS", "rotate or remove the worker")
	}
	if status, body := through(t, as(c.proxy, "_session_a").String(), "http://"+s.api+"/v1/ip"); status != 407 {
		t.Errorf("a name that is not the base and words: %d %s", status, body)
	}
	many := "/sessions/" + c.id + "/workers"
	s.must(200, "POST", many+"/w07/rotate", key, "")
	moved := c.exit("-country-de-session-w07-ttl-10m")
	if moved == w07 || c.exit("") != own {
		t.Errorf("after its rotation w07 has %s, and the session %s", moved, c.exit(""))
	}
	s.must(200, "POST", "/sessions/"+c.id+"/rotate", key, "")
	if got := c.exit("-session-w07"); got != moved {
		t.Errorf("the session was rotated, and w07 has %s after %s", got, moved)
	}
	s.must(200, "DELETE", many+"/w07", key, "")
	s.must(404, "GET", many+"/w07", key, "")
	c.exit("-session-w07-strict") // is another one

	var sold apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"static","config":{"product_no":"sta_isp_1","quantity":1,"duration_days":30,"country":"US"}}`).into(t, &sold)
	static, err := url.Parse(sold.IPList[0].FullURL)
	if err != nil {
		t.Fatal(err)
	}
	workerSession{service: s, proxy: static}.refused("-session-a", 400, "USERNAME_PARAMETER_INVALID", "static")
	s.verify()
}

func long(n int) string { return strings.Repeat("x", n) }

// TestAWorkerWhoseExitIsGone takes an address away from the service: a strict worker has none until it
// is rotated, another one moves, and workers with other exits keep them.
func TestAWorkerWhoseExitIsGone(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", pool(11, 12, 13, 14))
	key, _ := s.register("lost")
	c := workerSession{service: s, key: key, id: s.dynamic(key, "1")}
	c.proxy = s.proxyAt(key, c.id)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	words := func(i int) string {
		if i%2 == 0 {
			return "-session-" + names[i] + "-strict"
		}
		return "-session-" + names[i]
	}
	before := map[string]string{}
	for i, name := range names {
		before[name] = c.exit(words(i))
	}
	gone := before["a"]
	s.stop()
	s.env[len(s.env)-1] = strings.Replace(s.env[len(s.env)-1], gone, "127.0.0.60", 1) // which half is which stays
	s.start()
	lost := 0
	for i, name := range names {
		switch {
		case before[name] != gone:
			if after := c.exit(words(i)); after != before[name] {
				t.Errorf("%s moved from %s to %s", name, before[name], after)
			}
		case i%2 == 0:
			lost++
			c.refused(words(i), 503, "EXIT_LOST", "rotate the worker")
			c.refused("-session-"+name, 503, "EXIT_LOST", "rotate the worker")
			if w := s.workers(key, c.id)[name]; w.Status != "exit_lost" {
				t.Errorf("%s is %s", name, w.Status)
			}
			s.must(200, "POST", "/sessions/"+c.id+"/workers/"+name+"/rotate", key, "")
			if after := c.exit(words(i)); after == gone {
				t.Errorf("%s has %s after its rotation", name, after)
			}
		default:
			lost++
			after := c.exit(words(i))
			feed := string(s.must(200, "GET", "/sessions/"+c.id+"/events?page_size=100", key, "").body)
			if after == gone || !strings.Contains(feed, "the exit "+gone+" is gone; the worker moved to "+after) {
				t.Errorf("%s has %s, the feed %s", name, after, feed)
			}
		}
	}
	if lost == 0 {
		t.Error("no worker had the exit")
	}
	s.verify()
}
