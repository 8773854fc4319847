package proxyssx_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"agentproxy/test/fake/proxyssx"
)

func send(t *testing.T, s *proxyssx.Server, method, path, once, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.Base()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", proxyssx.APIKey)
	r.Header.Set("X-Request-Id", once+body)
	if once != "" {
		r.Header.Set("Idempotency-Key", once)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestAKeyIsMadeOnceForAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := proxyssx.New(t)
	const body = `{"label":"a","trafficCapGB":1}`
	status, first := send(t, s, "POST", "/reseller/pool-keys", "key_00000001", body)
	if status != 201 {
		t.Fatal(status, first)
	}
	if status, again := send(t, s, "POST", "/reseller/pool-keys", "key_00000001", body); status != 201 || strings.TrimSpace(again) != strings.TrimSpace(first) {
		t.Errorf("again: %d %s", status, again)
	}
	if s.Sales() != 1 || len(s.Keys()) != 1 {
		t.Errorf("%d sales", s.Sales())
	}
	s.Strict(true)
	if status, _ := send(t, s, "POST", "/reseller/pool-keys", "key_00000001", `{"label":"b","trafficCapGB":1}`); status != 409 {
		t.Errorf("another body: %d", status)
	}
	if status, _ := send(t, s, "POST", "/reseller/pool-keys", "key_00000002", body); status != 201 || s.Sales() != 2 {
		t.Errorf("another key: %d", status)
	}
}

func TestCapsAreWholeAndEndTheKey(t *testing.T) {
	t.Parallel()
	s := proxyssx.New(t)
	for _, gb := range []string{"0", "-1", "1.5", "1001", "null", `"1"`} {
		if status, _ := send(t, s, "POST", "/reseller/pool-keys", "", `{"label":"a","trafficCapGB":`+gb+`}`); status != 400 {
			t.Errorf("a cap of %s: %d", gb, status)
		}
	}
	_, text := send(t, s, "POST", "/reseller/pool-keys", "", `{"label":"a","trafficCapGB":1}`)
	var k proxyssx.Key
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bytes int64
		on    bool
	}{{1<<30 - 1, true}, {1 << 30, false}} {
		s.SetUsed(k.ID, c.bytes)
		if got := s.Keys()[0]; got.Enabled != c.on || got.TrafficUsedMB*(1<<20) != float64(c.bytes) {
			t.Errorf("%d bytes: %+v", c.bytes, got)
		}
	}
	if status, _ := send(t, s, "PATCH", "/reseller/pool-keys/"+k.ID, "", `{"trafficCapGB":2}`); status != 200 || s.Keys()[0].Enabled {
		t.Errorf("a higher cap switches on: %d", status)
	}
	if status, _ := send(t, s, "DELETE", "/reseller/pool-keys/"+k.ID, "", ""); status != 200 || len(s.Keys()) != 0 {
		t.Errorf("deleted: %d", status)
	}
	if status, _ := send(t, s, "GET", "/reseller/pool-keys/"+k.ID, "", ""); status != 404 {
		t.Errorf("deleted, it answers %d", status)
	}
}
