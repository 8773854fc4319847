package proxyseller

import (
	"net/http"
	"sync"
	"time"

	"agentproxy/domain/procurement"
)

// accessMemory distinguishes a wrong key from too many requests, for which version 2 of
// the API has the same answer, by when the key was last accepted.
type accessMemory struct {
	now func() time.Time

	mu       sync.Mutex
	accepted time.Time // when the seller last did what was asked
}

// limitPeriod is the time over which the seller counts requests.
const limitPeriod = time.Minute

// explained returns the error of an answer, as RateLimited instead of Auth if the key
// was accepted within two limitPeriods. A successful status without an error records
// that the key is accepted.
func (m *accessMemory) explained(status int, e *procurement.Error) *procurement.Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e == nil && status == http.StatusOK:
		m.accepted = m.now()
	case e == nil:
	case e.Class == procurement.Auth && !m.accepted.IsZero() && m.now().Sub(m.accepted) < 2*limitPeriod:
		e.Class, e.RetryAfter = procurement.RateLimited, limitPeriod
	}
	return e
}
