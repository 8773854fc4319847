package gateway_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
)

// Worker makes workers, and gives each the next exit.
func (b *fakeCore) Worker(_ context.Context, id string, words worker.Parameters) (r traffic.WorkerRoute, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used++
	a := b.sessions[id]
	switch {
	case b.down:
		return r, errDown
	case words.Country == "XX":
		return r, worker.ErrParameter.Msgf(`the word "country-xx" in the user name is not sold; the form is %s`, worker.Grammar)
	case words.Name == "" && a.hop != nil:
		r.Fresh = func(n uint64) (procurement.Endpoint, string, error) {
			e := *a.hop
			e.User = fmt.Sprintf("fresh%d", n)
			return e, e.User, nil
		}
		return r, nil
	case words.Name == "":
		for _, exit := range a.exits {
			r.Exits = append(r.Exits, session.Exit{IP: exit})
		}
		return r, nil
	}
	w, known := a.workers[words.Name]
	switch {
	case !known && b.mostWorkers > 0 && len(a.workers) >= b.mostWorkers:
		return r, worker.ErrLimit
	case !known:
		b.nextWorker++
		w = worker.Worker{ID: b.nextWorker, SessionID: id, Name: words.Name, AssignedAt: time.Now(),
			Settings: worker.Settings{Location: session.Location{Country: words.Country}, TTL: words.TTL, Strict: words.Strict}}
		w.Exit = a.exitOf(len(a.workers))
	case w.Differs(words) != "" && !w.Changeable:
		return r, worker.ErrDiffers
	case w.Lost:
		return r, worker.ErrExitLost
	case w.Due(time.Now()):
		w = w.Move(a.exitOf(int(w.ID)+w.Turn), time.Now())
	}
	w.Changeable = false
	a.workers[words.Name] = w
	r.Worker = w
	if a.hop != nil {
		e := *a.hop
		r.Token = procurement.WorkerToken(id, w.ID, w.Turn)
		e.User = "seller-" + r.Token
		r.Upstream = &e
	}
	return r, nil
}

func (a *account) exitOf(n int) session.Exit {
	if len(a.exits) == 0 {
		return session.Exit{}
	}
	return session.Exit{IP: a.exits[n%len(a.exits)]}
}

func (b *fakeCore) ReportLost(_ context.Context, had worker.Worker) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.sessions[had.SessionID]
	w := a.workers[had.Name]
	if w.Turn != had.Turn {
		return nil
	}
	b.lostExits++
	if w.Lost = w.Strict; !w.Lost {
		w = w.Move(a.exitOf(w.Turn), time.Now())
	}
	a.workers[had.Name] = w
	if w.Lost {
		return worker.ErrExitLost
	}
	return nil
}

func (b *fakeCore) Removed(_ context.Context, id string, ids []int64) (gone []int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, n := range ids {
		for _, w := range b.sessions[id].workers {
			if w.ID == n {
				continue next
			}
		}
		gone = append(gone, n)
	}
	return gone, nil
}

// count adds what a lease reported of workers, and returns what each has moved. It is called under mu.
func (a *account) count(moved []traffic.WorkerUse) map[int64]int64 {
	bytes := map[int64]int64{}
	for name, w := range a.workers {
		for _, m := range moved {
			if m.ID == w.ID {
				w.Usage.Up, w.Usage.Down = w.Usage.Up+m.Up, w.Usage.Down+m.Down
				w.Usage.Connections += m.Connections
			}
		}
		a.workers[name] = w
		bytes[w.ID] = w.Usage.Bytes()
	}
	return bytes
}

// edit changes a worker of a session.
func (b *fakeCore) edit(id, name string, change func(*worker.Worker)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.sessions[id].workers[name]
	change(&w)
	b.sessions[id].workers[name] = w
}

// addWorkers lets the workers of a session have exits, and makes one for each limit of bytes.
func (b *fakeCore) addWorkers(id string, exits []string, limits map[string]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.sessions[id]
	for _, exit := range exits {
		a.exits = append(a.exits, netip.MustParseAddr(exit))
	}
	for name, limit := range limits {
		b.nextWorker++
		a.workers[name] = worker.Worker{ID: b.nextWorker, SessionID: id, Name: name, Exit: a.exitOf(len(a.workers)),
			Settings: worker.Settings{MaxBytes: limit}}
	}
}

// workerUsage returns what was counted for a worker.
func (b *fakeCore) workerUsage(id, name string) worker.Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[id].workers[name].Usage
}
