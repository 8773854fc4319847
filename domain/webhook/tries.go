package webhook

import "time"

// Bounds of the requests of all agents together to one host, or to one address, that did not answer them: 30 in any
// hour, half of which may come at once. Accounts are many, and each may name an address that asked for nothing.
const (
	triesPerHour  = 30
	triesAtOnce   = triesPerHour / 2
	triesInterval = time.Hour / (triesPerHour - triesAtOnce)
	mostTargets   = 100_000 // that are counted; beyond it others wait
)

// Tries counts requests to hosts or addresses of the last hour. The zero value has none. It is not safe for
// concurrent use.
type Tries struct {
	used    map[string]time.Time
	trimmed time.Time
}

// Wait returns how long the next request to a target has to wait; 0: it may be made.
func (t *Tries) Wait(target string, now time.Time) time.Duration {
	used, known := t.used[target]
	switch {
	case known:
		return max(used.Sub(now)-(triesAtOnce-1)*triesInterval, 0)
	case len(t.used) >= mostTargets:
		return triesInterval
	}
	return 0
}

// Take counts a request that is made now. Once a minute it forgets targets that have all of their bound again.
func (t *Tries) Take(target string, now time.Time) {
	if t.used == nil {
		t.used = map[string]time.Time{}
	}
	if now.Sub(t.trimmed) >= time.Minute {
		t.trimmed = now
		for name, used := range t.used {
			if !used.After(now) {
				delete(t.used, name)
			}
		}
	}
	used := t.used[target]
	if used.Before(now) {
		used = now
	}
	t.used[target] = used.Add(triesInterval)
}

// Answered takes back a request that was accepted: receivers that accept them are not bounded.
func (t *Tries) Answered(target string) {
	if used, ok := t.used[target]; ok {
		t.used[target] = used.Add(-triesInterval)
	}
}
