package changes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// What another process does to the same file holds here after the next poll.
func TestChangesOfAnotherProcess(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	other := apptest.Open(t, apptest.Options{Database: w.Database})
	r := w.RegisterCredentials()
	tok, err := w.IssueToken(r)
	apptest.OK(t, err)
	notified := &apptest.ChangeRecorder{}
	w.Watch(notified)
	apptest.OK(t, w.Poll(t.Context()))
	apptest.Equal(t, "notified first", notified.Take(), "agent any, session any")
	apptest.OK(t, w.Poll(t.Context()))
	apptest.Equal(t, "notified without a change", notified.Take(), "")

	v := w.Buy(r.Agent.ID, apptest.Local)
	_, err = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
	apptest.OK(t, err)
	apptest.OK(t, other.Accounts.Disable(t.Context(), r.Agent.ID, "abuse"))
	_, err = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
	apptest.OK(t, err) // not polled yet
	apptest.OK(t, w.Poll(t.Context()))
	apptest.Equal(t, "notified", notified.Take(), "agent "+r.Agent.ID+", session "+v.ID)
	_, err = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
	apptest.ErrorIs(t, err, account.ErrDisabled)

	apptest.OK(t, other.Accounts.Enable(t.Context(), r.Agent.ID))
	_, _, err = other.Accounts.RotateSecret(t.Context(), accounts.Caller{AgentID: r.Agent.ID}, "")
	apptest.OK(t, err)
	apptest.OK(t, w.Poll(t.Context()))
	_, err = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
	apptest.OK(t, err)
	_, err = w.Accounts.AuthenticateToken(t.Context(), tok.Text)
	apptest.ErrorIs(t, err, account.ErrExpiredToken)

	t.Run("many changes, or such as were purged while it slept, are any change", func(t *testing.T) {
		notified.Take()
		for range 3 {
			apptest.OK(t, other.Accounts.SetRateLimit(t.Context(), r.Agent.ID, 7))
		}
		w.Clock.Advance(time.Hour)
		other.Clock.Advance(time.Hour)
		apptest.OK(t, other.Accounts.SetRateLimit(t.Context(), r.Agent.ID, 8))
		apptest.OK(t, other.Purge(t.Context()))
		apptest.OK(t, w.Poll(t.Context()))
		apptest.Equal(t, "notified", notified.Take(), "agent any, session any")
		apptest.OK(t, w.Poll(t.Context())) // finds its place again
		notified.Take()
		apptest.OK(t, other.Accounts.SetRateLimit(t.Context(), r.Agent.ID, 9))
		apptest.OK(t, w.Poll(t.Context()))
		apptest.Equal(t, "notified", notified.Take(), "agent "+r.Agent.ID)
		for range 4001 {
			w.Exec(`INSERT INTO changes (agent_id, session_id, at) VALUES ('a', '', ?)`, w.Clock.Now().UnixMicro())
		}
		apptest.OK(t, w.Poll(t.Context()))
		apptest.Equal(t, "notified", notified.Take(), "agent any, session any")
	})
	t.Run("after a poll that failed, anything may have changed", func(t *testing.T) {
		apptest.OK(t, w.Poll(t.Context()))
		notified.Take()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if w.Poll(gone) == nil {
			t.Error("the poll did not fail")
		}
		apptest.Equal(t, "notified", notified.Take(), "")
		apptest.OK(t, w.Poll(t.Context()))
		apptest.Equal(t, "notified", notified.Take(), "agent any, session any")
	})
}

// A read that was under way when the agent changed is not what later callers get.
func TestAReadUnderWayIsNotCached(t *testing.T) {
	t.Parallel()
	for _, any := range []bool{false, true} {
		w := apptest.New(t)
		r := w.RegisterCredentials()
		began, goOn := make(chan bool), make(chan bool)
		_, err := w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil) // the id of the key is known from here
		apptest.OK(t, err)
		w.AgentChanged("")
		stale := &slowView{Store: w.Store.Store, began: began, goOn: goOn}
		w.Store.Store = stale
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil) })
		<-began // it has read the agent as active
		w.Store.Store = w.DB
		apptest.OK(t, w.Accounts.Disable(t.Context(), r.Agent.ID, "abuse"))
		if any {
			w.AgentChanged("")
		}
		_, err = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
		apptest.ErrorIs(t, err, account.ErrDisabled)
		close(goOn)
		wg.Wait()
		_, err = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
		apptest.ErrorIs(t, err, account.ErrDisabled)
	}
}

// While the database is away a change of another process is not known: what is in memory does not decide then.
func TestCredentialsInMemoryExpireWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	other := apptest.Open(t, apptest.Options{Database: w.Database})
	r := w.RegisterCredentials()
	tok, err := w.IssueToken(r)
	apptest.OK(t, err)
	apptest.OK(t, w.Poll(t.Context()))
	credentials := func(ctx context.Context, what string, want error) {
		t.Helper()
		_, byKey := w.Accounts.AuthenticateKey(ctx, r.APIKey, nil)
		_, byToken := w.Accounts.AuthenticateToken(ctx, tok.Text)
		_, issued := w.IssueToken(r)
		for name, err := range map[string]error{"the key": byKey, "the token": byToken, "a new token": issued} {
			if name == "a new token" && ctx != t.Context() {
				continue
			}
			if want == nil && err != nil || !errors.Is(err, want) {
				t.Errorf("%s, %s: %v, want %v", what, name, err, want)
			}
		}
	}
	credentials(t.Context(), "at first", nil)
	present := w.Store.Store
	w.Store.Store = away{present}
	credentials(t.Context(), "at once", nil)
	if w.Poll(t.Context()) == nil {
		t.Error("the poll did not fail")
	}
	w.Clock.Advance(time.Second)
	credentials(t.Context(), "within a second", nil)
	w.Clock.Advance(time.Millisecond)
	credentials(t.Context(), "later", domain.ErrUnavailable)
	credentials(accounts.Unchecked(t.Context()), "later, for what may be unchecked", nil)

	apptest.OK(t, other.Accounts.Disable(t.Context(), r.Agent.ID, "abuse"))
	w.Store.Store = present
	credentials(t.Context(), "before the next poll", account.ErrDisabled)
	apptest.OK(t, w.Poll(t.Context()))
	credentials(accounts.Unchecked(t.Context()), "after it", account.ErrDisabled)
}

// away is a store that cannot be reached.
type away struct{ ports.Store }

func (away) View(context.Context, ports.ReadSet, func(context.Context, ports.Tx) error) error {
	return apptest.ErrStore
}

// slowView is a store whose views end late.
type slowView struct {
	ports.Store
	began, goOn chan bool
}

func (s *slowView) View(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	err := s.Store.View(ctx, reads, fn)
	s.began <- true
	<-s.goOn
	return err
}
