package workers

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"agentproxy/app/exitgate"
	"agentproxy/app/fulfilment"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// need is an exit of a seller that a worker is to get under a rule.
type need struct {
	worker   string
	id, turn int64 // of the worker, as it is; 0: it is new
	location session.Location
	strict   bool
	rule     string
}

// turns are the turns of exits that met the rule when they were probed, by what they are for.
type turns map[need]int

// unprobed reports that exits of a seller have to be chosen before a unit of work can give them.
type unprobed struct {
	rule  exit.Rule
	needs []need
}

func (unprobed) Error() string { return "exits have to be chosen first" }

// probedAtOnce bounds the workers that one call makes at a seller under a rule.
const probedAtOnce = 20

// firstTurn is the first turn of workers that were chosen an exit before they were made, and had no number then: their
// tokens are those of turns that no other worker of the session has.
const firstTurn = 1 << 32

// needOf returns what a worker of the set needs; false if it needs no choice.
func (set *workerSet) needOf(w worker.Worker) (need, bool) {
	if set.exits.Local() || set.session.Require.Empty() {
		return need{}, false
	}
	return need{w.Name, w.ID, int64(w.Turn), w.Location, w.Strict, set.session.Require.Key()}, true
}

// chosen returns unprobed if a worker needs an exit that was not chosen.
func (set *workerSet) chosen(w worker.Worker) error {
	n, needs := set.needOf(w)
	if _, has := set.turns[n]; needs && !has {
		return unprobed{set.session.Require, []need{n}}
	}
	return nil
}

// move gives a worker an exit; one of a seller that was chosen is that of its turn.
func (set *workerSet) move(w worker.Worker, to session.Exit) worker.Worker {
	n, needs := set.needOf(w)
	w = w.Move(to, set.now)
	if needs {
		w.Turn = set.turns[n]
	}
	return w
}

// withTurns runs a unit of work, again once the exits that it lacks are chosen.
func (u *Service) withTurns(
	ctx context.Context, s session.Session, exits fulfilment.WorkerExits, run func(turns) error,
) error {
	has := turns{}
	for range 4 {
		err := run(has)
		lacks, is := errors.AsType[unprobed](err)
		if !is {
			return err
		}
		if len(lacks.needs) > probedAtOnce {
			return domain.InvalidField("names", "may be at most %d new ones with require: the seller is asked for the exit "+
				"of each", probedAtOnce)
		}
		if err := u.chooseAll(ctx, s, exits, lacks, has); err != nil {
			return err
		}
	}
	return ports.ErrTimeout // others changed the workers meanwhile
}

// chooseAll chooses the exits that are needed. It ends with the first that cannot be had.
func (u *Service) chooseAll(
	ctx context.Context, s session.Session, exits fulfilment.WorkerExits, lacks unprobed, has turns,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type choice struct {
		need
		turn int
		err  error
	}
	results := make(chan choice, len(lacks.needs))
	for _, n := range lacks.needs {
		go func() {
			turn, err := u.choose(ctx, s, exits, lacks.rule, n)
			results <- choice{n, turn, err}
		}()
	}
	var refused error
	for range lacks.needs {
		c := <-results
		switch {
		case c.err == nil:
			has[c.need] = c.turn
		case refused == nil:
			refused = c.err
			cancel()
		}
	}
	return refused
}

// choose probes exits of a seller for a worker.
func (u *Service) choose(
	ctx context.Context, s session.Session, exits fulfilment.WorkerExits, rule exit.Rule, n need,
) (int, error) {
	from := int(n.turn) + 1
	if n.id == 0 {
		from = u.freshTurn()
	}
	return u.Gate.Choose(ctx, exitgate.Turns{AgentID: s.AgentID, Seller: s.Provider, Rule: rule,
		Declared: n.location.Country, From: from, Key: s.ID + fmt.Sprint(n),
		Endpoint: func(turn int) (procurement.Endpoint, error) {
			token := tokenOf(worker.Worker{SessionID: s.ID, ID: n.id, Turn: turn})
			e, err := exits.Endpoint(n.location, token, turn, n.strict)
			if err != nil {
				return procurement.Endpoint{}, inBody(err)
			}
			return *e, nil
		}})
}

// freshTurn returns a turn that begins those of a worker.
func (u *Service) freshTurn() int {
	h := fnv.New64a()
	h.Write([]byte(u.ids.New("")))
	return firstTurn + int(h.Sum64()>>24)<<8 // 2^40 beginnings of 256 turns each
}

// useChosen is like the queue's use, and chooses the exits that it lacks. A worker keeps the exit that it has if none
// can be chosen.
func (u *Service) useChosen(ctx context.Context, s session.Session, r request) (w worker.Worker, err error) {
	err = u.withTurns(ctx, s, r.exits, func(has turns) error {
		r.turns = has
		w, err = u.first.use(ctx, r)
		return err
	})
	if errors.Is(err, exit.ErrNotMet) || errors.Is(err, account.ErrRateLimited) || errors.Is(err, ports.ErrTimeout) {
		kept := r
		kept.keep = true
		if w, keeps := u.first.use(ctx, kept); keeps == nil {
			return w, nil
		}
	}
	return w, err
}

// refusesRule returns what is wrong with a rule for exits of a seller of which no one can be chosen beforehand.
func refusesRule(s session.Session, exits fulfilment.WorkerExits) error {
	if s.Require.Empty() || exits.Local() {
		return nil
	}
	return worker.ErrParameter.Msgf("the exits of this session have to meet a rule (require) and are chosen by " +
		"name at its seller: use -session-NAME in place of -rotate, or rotate the session with require {}")
}
