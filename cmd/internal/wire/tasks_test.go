package wire

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/payments"
)

func TestALoopRunsUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			loop(ctx, task{name: "count", every: time.Second, run: func(context.Context) error { runs++; return nil }}, slog.New(slog.DiscardHandler))
		}()
		time.Sleep(3500 * time.Millisecond)
		cancel()
		<-done
		if runs != 3 {
			t.Errorf("%d runs in 3.5 s, want 3", runs)
		}
	})
}

func TestALoopCanBeWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		runs, wake := 0, make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			loop(ctx, task{name: "count", every: time.Hour, run: func(context.Context) error { runs++; return nil }, trigger: wake},
				slog.New(slog.DiscardHandler))
		}()
		wake <- struct{}{}
		wake <- struct{}{}
		cancel()
		<-done
		if runs < 1 || runs > 2 {
			t.Errorf("%d runs after two wakes", runs)
		}
	})
}

func TestAFailingPassGoesOnAndIsLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var text strings.Builder
		done := make(chan struct{})
		go func() {
			defer close(done)
			loop(ctx, task{name: "fail", every: time.Second, run: func(context.Context) error { return errors.New("no disk") }},
				slog.New(slog.NewTextHandler(&text, nil)))
		}()
		time.Sleep(100*time.Second + time.Millisecond)
		cancel()
		<-done
		if lines := strings.Count(text.String(), "no disk"); lines != 7 { // after 1, 2, 4 ... 64 failures
			t.Errorf("%d lines for 100 failures, want 7", lines)
		}
	})
}

func TestALoopOfTheLeaderRunsWhileItLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		var leads atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			loop(ctx, task{name: "count", every: time.Second, run: func(context.Context) error { runs++; return nil },
				leads: leads.Load}, slog.New(slog.DiscardHandler))
		}()
		for _, turn := range []struct {
			leads bool
			runs  int
		}{{false, 0}, {true, 3}, {false, 3}, {true, 6}} {
			leads.Store(turn.leads)
			time.Sleep(3 * time.Second)
			if synctest.Wait(); runs != turn.runs {
				t.Errorf("%d runs, want %d", runs, turn.runs)
			}
		}
		cancel()
		<-done
	})
}

// A leader counts what ended as soon as it leads, at the start and after another one.
func TestALoopThatRunsAtOnce(t *testing.T) {
	all := tasksIn{Accounts: &accounts.Service{}, Orders: &payments.Orders{}}.list(nil, nil)
	if i := slices.IndexFunc(all, func(t task) bool { return t.name == "count what ended" }); i < 0 || !all[i].atOnce {
		t.Error("a new leader does not count what ended at once")
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var runs []time.Duration
		var leads atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			loop(ctx, task{name: "count", every: 20 * time.Second, leads: leads.Load, atOnce: true,
				run: func(context.Context) error { runs = append(runs, time.Since(began)); return nil }}, slog.New(slog.DiscardHandler))
		}()
		for _, now := range []bool{false, true, false, true} {
			leads.Store(now)
			time.Sleep(50*time.Second + 500*time.Millisecond)
		}
		synctest.Wait()
		want := []time.Duration{51 * time.Second, 71 * time.Second, 91 * time.Second, 152 * time.Second, 172 * time.Second, 192 * time.Second}
		if !slices.Equal(runs, want) {
			t.Errorf("runs at %v, want %v", runs, want)
		}
		cancel()
		<-done
	})
}
