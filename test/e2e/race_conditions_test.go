package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"sync"
	"testing"

	"agentproxy/adapters/apiclient"
)

// together runs n calls at once and counts the answers by status.
func together(n int, call func(i int) (reply, error)) (map[int]int, []reply) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	var replies []reply
	for i := range n {
		wg.Go(func() {
			r, err := call(i)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				counts[-1]++
				return
			}
			counts[r.status]++
			replies = append(replies, r)
		})
	}
	wg.Wait()
	return counts, replies
}

func TestFiftyCreatesWithOneKeyMakeOneSession(t *testing.T) {
	onEachShared(t, fiftyCreatesWithOneKeyMakeOneSession, forTenSessions)
}

func fiftyCreatesWithOneKeyMakeOneSession(t *testing.T, s *service) {
	key, _ := s.register("one key")
	for _, product := range []string{"dyn_fast_1", "dyn_global_1"} {
		body := fmt.Sprintf(`{"type":"dynamic","config":{"product_no":%q}}`, product)
		counts, replies := together(50, func(int) (reply, error) {
			return s.patient(t.Context(), "POST", "/sessions", key, body, "Idempotency-Key", "same-"+product)
		})
		ids := map[string]bool{}
		for _, r := range replies {
			if r.status == 409 && r.code() == "IDEMPOTENCY_CONFLICT" {
				continue
			}
			var d apiclient.Session
			r.into(t, &d)
			ids[d.SessionID] = true
		}
		if len(ids) != 1 || counts[201]+counts[202]+counts[409] != 50 {
			t.Errorf("%s: %d sessions of answers %v", product, len(ids), counts)
		}
	}
	if holds := s.count(key, "hold"); holds != 2 {
		t.Errorf("%d holds for two keys", holds)
	}
	s.verify()
}

// count counts the transactions of a type.
func (s *service) count(key, typ string) int {
	s.t.Helper()
	var list struct{ Pagination struct{ Total int } }
	s.must(200, "GET", "/billing/transactions?type="+typ, key, "").into(s.t, &list)
	return list.Pagination.Total
}

// forTenSessions gives each account the money of ten sessions.
const forTenSessions = "AGENTPROXY_TRIAL_BALANCE=4.00"

func TestAHundredCreatesWithMoneyForTen(t *testing.T) {
	onEachShared(t, aHundredCreatesWithMoneyForTen, forTenSessions)
}

func aHundredCreatesWithMoneyForTen(t *testing.T, s *service) {
	key, _ := s.register("ten")
	counts, _ := together(100, func(i int) (reply, error) {
		return s.patient(t.Context(), "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1}}`,
			"Idempotency-Key", fmt.Sprint("k", i))
	})
	if counts[201] != 10 || counts[402] != 90 {
		t.Errorf("answers by status: %v; want ten 201 and ninety 402", counts)
	}
	var b struct{ Balance, Held json.Number }
	s.must(200, "GET", "/billing/balance", key, "").into(t, &b)
	if rat(t, b.Balance).Sign() != 0 || rat(t, b.Held).Cmp(big.NewRat(4, 1)) != 0 {
		t.Errorf("balance %s and held %s; want 0 and 4", b.Balance, b.Held)
	}
	s.verify()
}
