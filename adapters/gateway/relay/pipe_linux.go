package relay

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentproxy/adapters/gateway/monotime"
)

// A larger pipe needs fewer calls. A user without privileges has 64 MiB for all
// pipes (fs.pipe-user-pages-soft); beyond it new pipes are too small to be worth
// their calls, and none is made for pipePause.
const (
	bigPipe   = 1 << 20
	smallPipe = 256 << 10
	leastPipe = 64 << 10
	pipePause = time.Second
)

// pipe holds spliced bytes between two sockets.
type pipe struct {
	r, w int
	size int
}

func (p *pipe) close() {
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

// pipes is a pool of at most max pipes. Descriptors bound the number of tunnels, so
// a direction returns its pipe whenever it waits for its source, and trim closes
// pipes that were not needed lately.
type pipes struct {
	mu   sync.Mutex
	free []*pipe
	open int // in use or free
	max  int
	low  int // least number of free ones since the last trim

	retry time.Duration // make none before it, by monotime
}

func newPipes(limit int) *pipes { return &pipes{max: limit} }

// get returns an empty pipe, nil if there is none.
func (ps *pipes) get() *pipe {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if n := len(ps.free); n > 0 {
		p := ps.free[n-1]
		ps.free = ps.free[:n-1]
		ps.low = min(ps.low, n-1)
		return p
	}
	now := monotime.Now()
	if ps.open >= ps.max || now < ps.retry {
		return nil
	}
	p := makePipe()
	if p == nil {
		ps.retry = now + pipePause
		return nil
	}
	ps.open++
	return p
}

// makePipe returns nil when descriptors or the memory for pipes have run out.
func makePipe() *pipe {
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return nil
	}
	p := &pipe{r: fds[0], w: fds[1]}
	for _, size := range []int{bigPipe, smallPipe} {
		var err error
		if p.size, err = unix.FcntlInt(uintptr(p.w), unix.F_SETPIPE_SZ, size); err == nil {
			return p
		}
	}
	p.size, _ = unix.FcntlInt(uintptr(p.w), unix.F_GETPIPE_SZ, 0)
	if p.size < leastPipe {
		p.close()
		return nil
	}
	return p
}

// put returns a pipe to the pool; one that is not empty is closed.
func (ps *pipes) put(p *pipe, empty bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if empty && ps.max > 0 {
		ps.free = append(ps.free, p)
		return
	}
	ps.open--
	p.close()
}

// trim closes the pipes that were free since the last trim.
func (ps *pipes) trim() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for range min(ps.low, len(ps.free)) {
		ps.free[0].close()
		ps.free = ps.free[1:]
		ps.open--
	}
	ps.low = len(ps.free)
}

func (ps *pipes) count() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.open
}

// close closes all free pipes, and the others when they are returned.
func (ps *pipes) close() {
	ps.mu.Lock()
	ps.max, ps.low = 0, len(ps.free)
	ps.mu.Unlock()
	ps.trim()
}
