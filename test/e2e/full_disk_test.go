package e2e_test

import (
	"net"
	"strings"
	"testing"

	"agentproxy/test/smalldisk"
)

func TestOnAFullDiskTheServiceStartsAndIsRead(t *testing.T) {
	t.Parallel()
	disk := smalldisk.New(t, 6<<20)
	s := serve(t, "AGENTPROXY_DATABASE_URL=sqlite://"+disk.Dir+"/full.db")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it answers nothing: the delivery is under way at the kill
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	key, _ := s.listener("on a full disk", "http://"+silent.Addr().String())
	s.must(200, "POST", "/account/webhook/test", key, "")
	writes := func() string {
		_, body := s.page("/readyz")
		_, line, _ := strings.Cut(body, "\nwrites ")
		line, _, _ = strings.Cut(line, "\n")
		return line
	}
	if got := writes(); got != "ok" {
		t.Fatalf("writes %s", got)
	}
	disk.Fill()
	full := func() bool {
		_, body := s.page("/readyz")
		return strings.HasPrefix(writes(), "failed") && strings.Contains(body, "database ok: 0.0 GB free")
	}
	within(t, soon, "it is not ready for writes", full)
	s.kill()
	s.start()
	s.must(200, "GET", "/account/info", key, "")
	s.must(200, "GET", "/sessions", key, "")
	if r, err := s.call(t.Context(), "PUT", "/account/info", key, `{"description":"new"}`); err != nil || r.status != 503 {
		t.Errorf("a write answers %d, %v", r.status, err)
	}
	s.logs("periodic task failed")
	s.logs("what a crash left unfinished")
	if !full() {
		t.Errorf("ready: %s; it printed:\n%s", writes(), s.log)
	}
	disk.Empty()
	within(t, soon, "it is ready", func() bool { status, _ := s.page("/readyz"); return status == 200 })
	s.must(200, "PUT", "/account/info", key, `{"description":"new"}`)
	s.verify()
}
