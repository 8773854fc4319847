package exitlogs

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/exitlog"
	"agentproxy/ports"
)

// ErrNoneFound is the answer to a look-up that finds no connection.
var ErrNoneFound = &domain.Error{Kind: domain.NotFound, Code: "NOBODY_FOUND",
	Message: "no recorded connection is like this then; check the time and its zone, or widen --within"}

// ErrTooMany refuses a look-up that more connections match than one answer has.
var ErrTooMany = &domain.Error{Kind: domain.Invalid, Code: "TOO_MANY_FOUND", Message: fmt.Sprintf(
	"more than %d connections match; make --within shorter, or add a criterion", exitlog.MaxFound)}

// ErrNoHold refuses to end a hold that is unknown or has ended.
var ErrNoHold = &domain.Error{Kind: domain.NotFound, Code: "HOLD_NOT_FOUND",
	Message: "no hold with this id holds; exits holds lists them"}

// SystemUser is who acts when no name is given.
const SystemUser = "operator"

// maxReason bounds the text of a reason, in bytes.
const maxReason = 1000

// maxCriteria bounds the texts of a query together, in bytes: they are kept.
const maxCriteria = 2000

// Service answers the operator.
type Service struct {
	store ports.Unit[repos]
	clock ports.Clock
	ids   ports.IDs
	cfg   Config
}

// New returns the use cases.
func New(cfg Config, store ports.Store, clock ports.Clock, ids ports.IDs) *Service {
	return &Service{narrow(store), clock, ids, cfg}
}

// LookupInput asks who used an exit, or what else its query names. The look-up itself is kept, whatever it finds.
type LookupInput struct {
	exitlog.Query
	Operator string // empty: SystemUser
	Reason   string
}

// Lookup returns the connections that match, the nearest first. It returns ErrNoneFound if there is
// none, and ErrTooMany beyond exitlog.MaxFound, after the look-up was kept.
func (s *Service) Lookup(ctx context.Context, in LookupInput) ([]exitlog.Connection, error) {
	if err := checkReason(in.Reason); err != nil {
		return nil, err
	}
	switch {
	case !in.Asks():
		return nil, domain.InvalidField("exit_ip", "or target, client, agent, seller or token is required")
	case in.Port != 0 && !in.Exit.IsValid():
		return nil, domain.InvalidField("exit_port", "is the port of an exit_ip, which is missing")
	case len(in.Target)+len(in.Agent)+len(in.Seller)+len(in.Token) > maxCriteria:
		return nil, domain.InvalidField("target", "and the other criteria have at most 2000 bytes together")
	}
	if in.Within < 0 || in.Within > 24*time.Hour {
		return nil, domain.InvalidField("within", "must be 0 to 24h")
	}
	var found []exitlog.Connection
	more := false
	err := s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		answer := exitlog.NewAnswer(in.Query)
		from, to := in.Stored()
		err := tx.ExitLog().Between(ctx, from, to, answer.Add)
		found, more = answer.Connections(), answer.More()
		return err
	})
	if err != nil {
		return nil, err
	}
	l := exitlog.Lookup{ID: s.ids.New("look_"), At: s.clock.Now(), Operator: cmp.Or(in.Operator, SystemUser),
		Reason: in.Reason, Query: in.Query, Found: len(found)}
	// What was found is shown only after it was kept that it was looked for.
	if err := s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.ExitLog().AddLookup(ctx, l)
	}); err != nil {
		return nil, err
	}
	switch {
	case more:
		return nil, ErrTooMany
	case len(found) == 0:
		return nil, ErrNoneFound
	}
	return found, nil
}

func checkReason(reason string) error {
	if strings.TrimSpace(reason) == "" || len(reason) > maxReason {
		return domain.InvalidField("reason", "is required: why this is looked for, at most 1000 bytes")
	}
	return nil
}

// Lookups lists the newest look-ups.
func (s *Service) Lookups(ctx context.Context, limit int) (list []exitlog.Lookup, err error) {
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err = tx.ExitLog().Lookups(ctx, limit)
		return err
	})
	return list, err
}

// Hold keeps UTC days from deletion, from one day to another, both inclusive.
func (s *Service) Hold(ctx context.Context, from, to time.Time, operator, reason string) (exitlog.Hold, error) {
	if to.Before(from) {
		return exitlog.Hold{}, domain.InvalidField("to", "must not be before from")
	}
	if err := checkReason(reason); err != nil {
		return exitlog.Hold{}, err
	}
	h := exitlog.Hold{ID: s.ids.New("hold_"), From: from, To: to.Add(24 * time.Hour),
		Operator: cmp.Or(operator, SystemUser), Reason: reason, CreatedAt: s.clock.Now()}
	return h, s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.ExitLog().AddHold(ctx, h)
	})
}

// Release ends a hold.
func (s *Service) Release(ctx context.Context, id string) error {
	return s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		ended, err := tx.ExitLog().EndHold(ctx, id, s.clock.Now())
		if err == nil && !ended {
			err = ErrNoHold
		}
		return err
	})
}

// Holds lists all holds.
func (s *Service) Holds(ctx context.Context) (list []exitlog.Hold, err error) {
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err = tx.ExitLog().Holds(ctx)
		return err
	})
	return list, err
}

// The bounds of one Purge.
const (
	purgeBatch   = 500
	purgeBatches = 100
)

// Purge deletes the records of UTC days that are past their time, in small transactions.
func (s *Service) Purge(ctx context.Context) error {
	day := 24 * time.Hour
	before := s.clock.Now().Truncate(day).Add(-time.Duration(s.cfg.Days) * day)
	for range purgeBatches {
		n := 0
		err := s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
			n, err = tx.ExitLog().Purge(ctx, before, exitlog.Margin, purgeBatch)
			return err
		})
		if err != nil || n < purgeBatch {
			return err
		}
	}
	return nil
}
