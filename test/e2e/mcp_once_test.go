package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestOnePurchaseIDBuysOnce calls create_session 200 times in parallel over both transports of two
// replicas.
func TestOnePurchaseIDBuysOnce(t *testing.T) {
	t.Parallel()
	const calls = 200
	both := sharedReplicas(t)
	key, _ := both[0].register("once")
	var clients []*mcp.ClientSession
	for _, s := range both {
		clients = append(clients, s.toolsByHTTP(requestEra, withKey{"X-API-Key", key}),
			s.toolsByHTTP(handshakeEra, withKey{"X-API-Key", key}), s.toolsByStdio(requestEra, key, t.TempDir()))
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	ids := map[string]int{}
	for n := range calls {
		wait.Go(func() {
			id, err := buyOnce(t.Context(), clients[n%len(clients)])
			mu.Lock()
			defer mu.Unlock()
			ids[id]++
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if len(ids) != 1 {
		t.Errorf("one purchase_id gave %v", ids)
	}
	var list struct{ Pagination struct{ Total int } }
	both[0].must(200, "GET", "/sessions", key, "").into(t, &list)
	if list.Pagination.Total != 1 {
		t.Errorf("there are %d sessions", list.Pagination.Total)
	}
	both[0].verify()
}

// buyOnce repeats a purchase for as long as its refusal is retryable.
func buyOnce(ctx context.Context, c *mcp.ClientSession) (string, error) {
	for {
		a, err := tool(ctx, c, "create_session", map[string]any{"product_no": "dyn_fast_1", "traffic_gb": 0.1,
			"max_cost": 1, "purchase_id": "the only one"})
		if err != nil && strings.Contains(err.Error(), "Service Unavailable") {
			continue // the credential could not be read: 503 may be repeated
		}
		if err != nil || !a.refused {
			return a.str("session_id"), err
		}
		if again, _ := a.fields["retryable"].(bool); !again {
			return "", fmt.Errorf("refused: %s", a.text)
		}
	}
}
