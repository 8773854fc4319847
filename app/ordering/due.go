package ordering

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentproxy/app/slots"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

const (
	batchSize = 500 // orders that one run of Recover takes on
	dueSize   = 100 // orders of each provider that one run of DriveDue takes on
	// waitWithin is how long DriveDue and a job wait for what they drive. What takes
	// longer goes on in the slots of its provider.
	waitWithin = 15 * time.Second
	// busyAfter is when a job runs again whose provider has no free slot.
	busyAfter = 2 * time.Second
)

// DriveDue takes the next steps of every order that is due, in the slots of its
// provider. An error of one does not delay the others, and neither does a provider that
// does not answer.
func (u *Driver) DriveDue(ctx context.Context) error {
	due := map[string][]slots.Item{}
	err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		orders, err := tx.Orders().Due(ctx, u.clock.Now(), dueSize)
		clear(due)
		for _, o := range orders {
			due[o.Provider] = append(due[o.Provider], slots.Item{ID: o.SessionID, Agent: o.AgentID})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("orders that are due: %w", err)
	}
	var mu sync.Mutex
	var faults []error
	drive := func(id string) {
		if _, err := u.Drive(ctx, id); err != nil {
			mu.Lock()
			defer mu.Unlock()
			faults = append(faults, err)
		}
	}
	timeout := time.After(waitWithin)
	var running []<-chan struct{}
	for provider, items := range due {
		done, _ := u.slots.Go(provider, items, drive)
		running = append(running, done)
	}
	for _, done := range running {
		select {
		case <-done:
		case <-timeout:
			return nil // the slots go on; an order that failed is due again
		case <-ctx.Done():
			return nil
		}
	}
	return errors.Join(faults...)
}

// DriveSession runs the job of a session that has orders or is creating. It may
// run twice, and while the session ends. If its provider has no free slot it waits for
// one without the job.
func (u *Driver) DriveSession(ctx context.Context, id string) error {
	st, err := u.state(ctx, id)
	if err != nil {
		return err
	}
	if len(st.Orders) == 0 { // it is delivered in this process
		_, err := u.Drive(ctx, id)
		return err
	}
	result := make(chan error, 1)
	done, waits := u.slots.Go(st.Session.Provider, []slots.Item{{ID: id, Agent: st.Session.AgentID}}, func(id string) {
		_, err := u.Drive(context.WithoutCancel(ctx), id)
		result <- err
	})
	if waits {
		return nil // should the process end before, the order is due later
	}
	select {
	case <-done:
	case <-time.After(waitWithin):
		return nil
	}
	select {
	case err := <-result:
		return err
	default:
		return ports.RequeueAfter(busyAfter)
	}
}

// Recover stores a new job for every session that has been creating for that
// long without an order: the process that had its job may have died. An order is
// driven when it is due.
func (u *Driver) Recover(ctx context.Context, olderThan time.Duration) error {
	return u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		now := u.clock.Now()
		ids, err := tx.Sessions().CreatingSince(ctx, now.Add(-olderThan), batchSize)
		if err != nil {
			return err
		}
		for _, id := range ids {
			orders, err := tx.Orders().Of(ctx, id)
			if err != nil {
				return err
			}
			if len(orders) > 0 {
				continue
			}
			if err := tx.Jobs().Insert(ctx, ports.Job{Kind: ports.DriveOrdersJob, SessionID: id}, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// AbandonCreation fails a session whose job has failed every time, unless there is an
// order: then something may have been bought, and the session keeps its hold
// until the provider answers.
func (u *Driver) AbandonCreation(ctx context.Context, id string) error {
	st, err := u.state(ctx, id)
	if err != nil || st.Session.Status != session.Creating || len(st.Orders) > 0 {
		return err
	}
	return u.fail(ctx, id, ports.ErrProvider.Msgf("the session could not be delivered; try again"))
}

// ErrUndecided means that the orders are driven in the background.
var ErrUndecided = errors.New("the provider has not answered yet")

// DriveFor is like Drive for an agent, who waits no longer than that.
func (u *Driver) DriveFor(ctx context.Context, s session.Session, wait time.Duration) (State, error) {
	type result struct {
		State
		err error
	}
	done := make(chan result, 1)
	ended, begun := u.slots.Await(s.Provider, s.AgentID, wait, func() {
		st, err := u.Drive(ctx, s.ID)
		done <- result{st, err}
	})
	if !begun {
		item := []slots.Item{{ID: s.ID, Agent: s.AgentID}}
		u.slots.Go(s.Provider, item, func(id string) { _, _ = u.Drive(ctx, id) }) // if it fails it is due again
	}
	if !ended {
		return State{}, ErrUndecided
	}
	r := <-done
	return r.State, r.err
}

// maxSteps bounds the steps that Drive takes in a row.
const maxSteps = 20

// Drive takes all steps that are due now of a session and its orders, and returns
// them as it leaves them. A step that must wait is due at NextAt of its order. A
// cancelled context does not stop it: an order that was sent is worth money.
func (u *Driver) Drive(ctx context.Context, id string) (State, error) {
	ctx = context.WithoutCancel(ctx)
	for range maxSteps {
		st, more, err := u.step(ctx, id)
		if err != nil {
			return st, fmt.Errorf("orders of %s: %w", id, err)
		}
		if !more {
			return st, nil
		}
	}
	return u.state(ctx, id)
}

// step takes the first step that is due. It returns the state that it decided by, and more if another step may follow.
func (u *Driver) step(ctx context.Context, id string) (st State, more bool, err error) {
	if st, err = u.state(ctx, id); err != nil {
		return st, false, err
	}
	ctx = ports.WithParty(ports.WithAgent(ctx, st.Session.AgentID), st.party)
	if len(st.Orders) == 0 {
		if st.Session.Status != session.Creating {
			return st, false, nil
		}
		return st, true, u.deliverInProcess(ctx, st.Session)
	}
	now := u.clock.Now()
	for _, o := range st.Orders {
		do := u.next(st.Session, o, now)
		if do == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, stepTimeout)
		defer cancel()
		return st, true, do(ctx, st.Session, o)
	}
	return st, false, nil
}

// next returns the step of an order that is due, or nil.
func (u *Driver) next(s session.Session, o procurement.Order,
	now time.Time) func(context.Context, session.Session, procurement.Order) error {
	due := !o.NextAt.IsZero() && !now.Before(o.NextAt)
	switch {
	case o.Status == procurement.Planned && (o.Class == "" || due):
		return u.handlerOf(o).send
	case o.Status == procurement.Sent && due:
		return func(ctx context.Context, _ session.Session, o procurement.Order) error {
			return u.markUnknown(ctx, o, "the process that sent it has died")
		}
	case o.Status == procurement.Unknown && due:
		return u.handlerOf(o).resolve
	case o.Status != procurement.Confirmed || !due:
		return nil
	case s.AwaitsOutcome() && o.Undelivered():
		return deliveries{u}.await
	case s.Status.Over():
		return deliveries{u}.cancelEnded
	case s.Status == session.Active: // whatever State the order has at the moment
		return deliveries{u}.check
	}
	return deliveries{u}.await
}

// handler has the steps in which purchases, renewals and exchanges differ.
type handler interface {
	// send places a planned order.
	send(ctx context.Context, s session.Session, o procurement.Order) error
	// resolve asks the provider for the outcome of an unknown order.
	resolve(ctx context.Context, s session.Session, o procurement.Order) error
	// confirm takes what the provider has for an order.
	confirm(ctx context.Context, o procurement.Order, d procurement.Delivery) error
	// refused is the consequence of a refusal, in its transaction.
	refused(ctx context.Context, tx Repos, s session.Session, o procurement.Order, now time.Time) error
}

// handlerOf returns the handler of an order.
func (u *Driver) handlerOf(o procurement.Order) handler {
	switch o.Kind {
	case procurement.Renewal:
		return renewals{u}
	case procurement.Exchange:
		return exchanges{u}
	}
	return purchases{u}
}

// Wait returns when everything that is driven in the background, or the context, has ended.
func (u *Driver) Wait(ctx context.Context) error { return u.slots.Wait(ctx) }
