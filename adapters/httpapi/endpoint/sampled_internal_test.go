package endpoint

import (
	"testing"
	"time"

	"agentproxy/adapters/lograte"
)

// Failures and slow requests are all in the access log; of the others some are.
func TestFailuresAndSlowRequestsAreAllLogged(t *testing.T) {
	t.Parallel()
	a := &API{served: lograte.New(1, time.Second), refused: lograte.New(1, time.Second)}
	for _, c := range []struct {
		status int
		took   time.Duration
		want   *lograte.Limiter
	}{{200, 0, a.served}, {302, 0, a.served}, {200, slow, nil}, {400, 0, nil}, {401, 0, a.refused}, {404, slow, a.refused},
		{429, 0, a.refused}, {500, 0, nil}, {503, slow, nil}} {
		if a.sampled(c.status, c.took) != c.want {
			t.Errorf("%d after %v is bounded by the wrong limit", c.status, c.took)
		}
	}
}
