package procurement

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentproxy/app/slots"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

const (
	batchSize   = 500 // orders that one run of Recover takes on
	dueSize     = 100 // orders of each provider that one run of DriveDue takes on
	driveAtOnce = 8   // sessions of one provider that are driven at once
	// awaitedAtMost bounds the calls of agents that go on at one provider, answered or not.
	awaitedAtMost = 256
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
	err := u.store.View(ctx, func(ctx context.Context, tx Repos) error {
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
	return u.store.Update(ctx, func(ctx context.Context, tx Repos) error {
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

// GiveUp fails a session whose job has failed every time, unless there is an
// order: then something may have been bought, and the session keeps its hold
// until the provider answers.
func (u *Driver) GiveUp(ctx context.Context, id string) error {
	st, err := u.state(ctx, id)
	if err != nil || st.Session.Status != session.Creating || len(st.Orders) > 0 {
		return err
	}
	return u.fail(ctx, id, ports.ErrProvider.Msgf("the session could not be delivered; try again"))
}

// Wait returns when everything that is driven in the background, or the context, has ended.
func (u *Driver) Wait(ctx context.Context) error { return u.slots.Wait(ctx) }
