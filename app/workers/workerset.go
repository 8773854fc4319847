package workers

import (
	"context"
	"maps"
	"net/netip"
	"time"

	"agentproxy/app/exitgate"
	"agentproxy/app/fulfilment"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

// workerSet is the workers of one session in a unit of work that changes some of them.
type workerSet struct {
	service *Service
	tx      Repos
	session session.Session
	exits   fulfilment.WorkerExits
	now     time.Time
	workers map[string]worker.Worker
	used    map[netip.Addr]int // workers of an exit, the session itself included
	unique  map[netip.Addr]int // those of them that share it with no other unique one
	bad     map[netip.Addr]bool
	filters map[string]*exitgate.Filter // of the session's rule, by the country that exits are sold as
	turns   turns                       // of exits of a seller that were chosen
}

// workerSet reads a session, which the unit has locked, and its workers.
func (u *Service) workerSet(
	ctx context.Context, tx Repos, id string, exits fulfilment.WorkerExits,
) (*workerSet, error) {
	s, err := tx.Sessions().Load(ctx, id)
	if err != nil {
		return nil, err
	}
	list, err := tx.Workers().Of(ctx, id)
	if err != nil {
		return nil, err
	}
	set := &workerSet{service: u, tx: tx, session: s, exits: exits, now: u.clock.Now(),
		workers: make(map[string]worker.Worker, len(list)), used: map[netip.Addr]int{},
		unique: map[netip.Addr]int{}, bad: map[netip.Addr]bool{}, filters: map[string]*exitgate.Filter{}}
	for _, exit := range s.Exits {
		set.used[exit.IP]++
	}
	for _, w := range list {
		set.workers[w.Name] = w
		set.occupy(w, 1)
	}
	return set, nil
}

// occupy adds by, 1 or -1, to the number of workers of a worker's exit.
func (set *workerSet) occupy(w worker.Worker, by int) {
	set.used[w.Exit.IP] += by
	if w.Unique {
		set.unique[w.Exit.IP] += by
	}
}

// present reports whether an exit is one that connections can be made from.
func (set *workerSet) present(exit session.Exit) bool {
	if !set.exits.Local() {
		return true
	}
	if !exit.IP.IsValid() || set.bad[exit.IP] || !set.exits.Has(exit) {
		return false
	}
	if !set.exits.Binds(exit) {
		set.bad[exit.IP] = true
		return false
	}
	return true
}

// require stores the rule of the session from now on; nil leaves the one that it has.
func (set *workerSet) require(ctx context.Context, rule *exit.Rule) error {
	if rule == nil {
		return nil
	}
	set.session.Require = *rule
	return set.tx.Sessions().Put(ctx, set.session)
}

// filter returns who holds exits in a place to the rule of the session.
func (set *workerSet) filter(l session.Location) *exitgate.Filter {
	f, made := set.filters[l.Country]
	if !made {
		f = set.service.Gate.Filter(set.session.Require, l.Country)
		set.filters[l.Country] = f
	}
	return f
}

// exitFor returns an exit for a worker: that which the fewest of the session use, and never avoid. It
// is false if there is none. The exits of sellers are not known, and the next token is the next exit.
func (set *workerSet) exitFor(w worker.Worker, avoid session.Exit) (session.Exit, bool) {
	if !set.exits.Local() {
		return session.Exit{}, true
	}
	used := maps.Clone(set.used)
	for a, n := range set.unique {
		switch {
		case n == 0:
		case w.Unique:
			used[a] = -1
		default:
			used[a] += worker.MaxPerSession // another worker takes it when all others are taken more often
		}
	}
	candidates := set.exits.Exits(w.Location)
	if f := set.filter(w.Location); f != nil {
		for _, a := range candidates {
			if !f.Passes(a) {
				used[a] = -1
			}
		}
	}
	for {
		for a := range set.bad {
			used[a] = -1
		}
		exit, ok := worker.Pick(candidates, used, avoid.IP, w.SessionID+"/"+w.Name)
		if !ok {
			return session.Exit{}, false
		}
		if set.present(session.Exit{IP: exit}) {
			return session.Exit{IP: exit}, true
		}
	}
}

// checkEndpoint refuses a worker that the seller has no endpoint for.
func (set *workerSet) checkEndpoint(w worker.Worker) error {
	_, err := set.exits.Endpoint(w.Location, tokenOf(w), w.Turn, w.Strict)
	return err
}

// add adds a worker to the session.
func (set *workerSet) add(ctx context.Context, name string, settings worker.Settings) (worker.Worker, error) {
	if len(set.workers) >= worker.MaxPerSession {
		return worker.Worker{}, worker.ErrLimit
	}
	w := worker.Worker{SessionID: set.session.ID, Name: name, Settings: settings, CreatedAt: set.now, AssignedAt: set.now}
	if err := set.checkEndpoint(w); err != nil {
		return w, err
	}
	if err := set.chosen(w); err != nil {
		return w, err
	}
	exit, ok := set.exitFor(w, session.Exit{})
	if !ok {
		err := catalog.ErrOutOfStock.Msgf("there is no exit for another worker in this place")
		return w, set.filter(w.Location).Refusal(err)
	}
	w.Exit = exit
	if n, needs := set.needOf(w); needs {
		w.Turn = set.turns[n]
	}
	var err error
	if w.ID, err = set.tx.Workers().Insert(ctx, w); err != nil {
		return w, err
	}
	set.workers[name] = w
	set.occupy(w, 1)
	return w, nil
}

// put stores a worker that changed.
func (set *workerSet) put(ctx context.Context, before, after worker.Worker) error {
	if before == after {
		return nil
	}
	set.occupy(before, -1)
	set.occupy(after, 1)
	set.workers[after.Name] = after
	return set.tx.Workers().Put(ctx, after)
}
