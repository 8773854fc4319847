package endpoint

import (
	"strconv"
	"sync"
)

// Header values that are the same for every answer; net/http only reads them.
var (
	contentJSON = []string{"application/json"}
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
	closing     = []string{"close"}
)

// limitHeaderCache holds the header values that depend on the limit alone,
// by limit.
type limitHeaderCache struct{ byLimit sync.Map }

type limitHeader struct{ limit, policy []string }

func (l *limitHeaderCache) of(perMinute int) limitHeader {
	if h, ok := l.byLimit.Load(perMinute); ok {
		return h.(limitHeader)
	}
	n := strconv.Itoa(perMinute)
	h := limitHeader{limit: []string{n}, policy: []string{`"default";q=` + n + `;w=60`}}
	l.byLimit.Store(perMinute, h)
	return h
}
