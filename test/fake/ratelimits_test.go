package fake_test

import (
	"testing"

	"agentproxy/adapters/system"
	"agentproxy/test/contract"
	"agentproxy/test/fake"
)

func TestTheRateLimitsKeepTheContract(t *testing.T) {
	t.Parallel()
	contract.RateLimits(t, func(*testing.T) contract.LimitWorld {
		r := fake.NewRateLimits(system.Clock{})
		return contract.LimitWorld{RateLimits: r, Age: r.Age, Keys: r.Keys}
	})
}
