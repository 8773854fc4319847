// Package lograte bounds how often the same thing is logged.
package lograte

import (
	"sync"
	"time"
)

// mostKeys bounds how many keys are remembered. Beyond it all are forgotten, so what they left out is not counted.
const mostKeys = 256

// Limiter lets a number of records of each key pass in a time, and counts the others.
type Limiter struct {
	most  int
	every time.Duration

	mu      sync.Mutex
	windows map[string]*window
}

// window is the time in which the records of a key are counted.
type window struct {
	began   time.Time
	passed  int
	leftOut int
	before  int // left out in earlier times, and not returned yet
}

// New returns a Limiter that passes a number of records of a key in a time.
func New(most int, every time.Duration) *Limiter {
	return &Limiter{most: most, every: every, windows: map[string]*window{}}
}

// Allow reports whether a record of a key is logged.
func (l *Limiter) Allow(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[key]
	if w == nil {
		if len(l.windows) >= mostKeys {
			clear(l.windows)
		}
		w = &window{began: now}
		l.windows[key] = w
	}
	if l.ended(w, now) {
		w.began, w.passed = now, 0
		w.before, w.leftOut = w.before+w.leftOut, 0
	}
	if w.passed >= l.most {
		w.leftOut++
		return false
	}
	w.passed++
	return true
}

// LeftOut returns how many records of a key were not logged in times that have ended, and forgets them.
func (l *Limiter) LeftOut(key string, now time.Time) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[key]
	if w == nil {
		return 0
	}
	n, w.before = w.before, 0
	if l.ended(w, now) {
		n, w.leftOut = n+w.leftOut, 0
	}
	return n
}

// ended reports whether the time of a window has ended, also if the clock was set back.
func (l *Limiter) ended(w *window, now time.Time) bool { return now.Sub(w.began).Abs() >= l.every }
