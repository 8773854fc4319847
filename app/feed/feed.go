// Package feed lets agents read the events of their account in order, and wait for the next one.
package feed

import (
	"context"
	"errors"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Bounds of a call.
const (
	MaxWait  = 30 * time.Second
	MaxItems = 100
)

const (
	checkEvery = 400 * time.Millisecond // how often it is looked whether credentials of calls that wait have ended
	readEvery  = 100 * time.Millisecond // an agent with many events has its waiting calls read no more often
)

// errCursor refuses a cursor that is none of this agent's, or that is older than the events that are kept.
var errCursor = domain.InvalidField("after", "must be the next of an earlier answer for this account, not older than "+
	"30 days; leave it out to begin with the oldest event")

// Service reads the feeds of agents.
type Service struct {
	store   ports.Unit[repos]
	clock   ports.Clock
	secrets ports.Secrets
	waiting
}

// New returns a service in which as many calls may wait, 0 for any number. It is to watch a changes.Hub and its
// feeds.
func New(store ports.Store, clock ports.Clock, secrets ports.Secrets, most int) *Service {
	s := &Service{store: narrow(store), clock: clock, secrets: secrets}
	s.init(most, clock)
	return s
}

// Read asks for a part of an agent's feed.
type Read struct {
	AgentID string
	Key     string // only events of sessions that this key bought; empty: all
	After   string // the Next of a Page; empty: from the oldest event that is kept
	Types   []webhook.Type
	Limit   int           // 1 to MaxItems
	Wait    time.Duration // for the first event if there is none; at most MaxWait
	// Live returns the refusal of a credential that has ended meanwhile. It is asked when the agent changes, and from
	// Ends on, the time when the credential ends by itself; zero: never.
	Live func(context.Context) error
	Ends time.Time
}

// Page is a part of a feed.
type Page struct {
	Events []webhook.Event
	Next   string // the After of what follows
}

// Read returns the events behind a place, oldest first, and waits for the first if there is none. It returns
// account.ErrRateLimited if too many calls of the agent wait, and what Live returns once that is an error.
func (s *Service) Read(ctx context.Context, in Read) (Page, error) {
	began := s.clock.Now()
	after, err := s.openCursor(in.AgentID, in.After, began)
	if err != nil {
		return Page{}, err
	}
	q := ports.FeedQuery{AgentID: in.AgentID, Key: in.Key, After: after, Types: in.Types, Limit: in.Limit}
	if len(q.Types) == 0 { // none that the caller may read
		q.Types = []webhook.Type{""}
	}
	var w *waiter
	var full error
	if in.Wait > 0 {
		if w, full = s.join(in); w != nil {
			defer s.leave(w)
		}
	}
	found, err := s.read(ctx, q)
	if err == nil && len(found.Events) == 0 && in.Wait > 0 {
		if full != nil {
			return Page{}, full
		}
		found, err = s.await(ctx, w, in, q, found)
	}
	if err != nil {
		return Page{}, err
	}
	at := s.clock.Now()
	if n := len(found.Events); n == in.Limit { // those that follow may be as old
		at = found.Events[n-1].At
	}
	return Page{Events: found.Events, Next: s.sealCursor(in.AgentID, found.Next, at)}, nil
}

// await reads again each time that the feed has grown, until there is an event or the time is over.
func (s *Service) await(ctx context.Context, w *waiter, in Read, q ports.FeedQuery, found ports.FeedPage) (
	ports.FeedPage, error) {
	end := time.NewTimer(in.Wait)
	defer end.Stop()
	for len(found.Events) == 0 {
		var again <-chan time.Time // events are committed that will be listed soon
		if found.Later {
			again = time.After(readEvery)
		}
		select {
		case <-w.grew:
			if !pause(ctx, readEvery) {
				return found, ctx.Err()
			}
			w.drain()
		case <-again:
		case <-w.check:
			if err := in.Live(ctx); err != nil {
				return found, err
			}
			continue
		case <-end.C:
			return found, nil
		case <-w.over:
			return found, nil
		case <-s.closing:
			return found, nil
		case <-ctx.Done():
			return found, ctx.Err()
		}
		q.After = found.Next
		next, err := s.read(ctx, q)
		if err != nil {
			return found, err
		}
		found = next
	}
	return found, nil
}

// pause waits, and reports whether the context still lives.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Service) read(ctx context.Context, q ports.FeedQuery) (page ports.FeedPage, err error) {
	err = s.store.Read(ctx, func(ctx context.Context, tx repos) error {
		page, err = tx.Outbox().Feed(ctx, q)
		return err
	})
	if errors.Is(err, ports.ErrMissed) { // of a database that went back in time
		err = errCursor
	}
	return page, err
}
