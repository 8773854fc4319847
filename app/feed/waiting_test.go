package feed_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/feed"
	"agentproxy/domain/account"
	"agentproxy/domain/webhook"
	"agentproxy/test/apptest"
)

// A call that waits ends with its key, by an end that comes by itself too.
func TestAWaitEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*apptest.World, accounts.Caller, account.Key){
		"the key is deleted": func(w *apptest.World, all accounts.Caller, k account.Key) {
			apptest.OK(t, w.Accounts.Keys.Delete(t.Context(), all, k.ID, accounts.EndChildren, accounts.Keep))
		},
		"the key expires": func(w *apptest.World, _ accounts.Caller, k account.Key) {
			w.Clock.Advance(k.Expires.Sub(w.Clock.Now()))
		},
		"the account is disabled": func(w *apptest.World, all accounts.Caller, _ account.Key) {
			apptest.OK(t, w.Accounts.Disable(t.Context(), all.AgentID, "test"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			all, err := w.Accounts.AuthenticateKey(t.Context(), w.RegisterCredentials().APIKey, nil)
			apptest.OK(t, err)
			k, text, err := w.Accounts.Keys.Create(t.Context(), all, accounts.NewKey{Name: "child", Expires: w.Clock.Now().Add(time.Hour)})
			apptest.OK(t, err)
			c, err := w.Accounts.AuthenticateKey(t.Context(), text, nil)
			apptest.OK(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked := 0
			ended := make(chan error)
			go func() {
				_, err := w.Feed.Read(ctx, feed.Read{AgentID: c.AgentID, Types: webhook.Types, Limit: 1, Wait: feed.MaxWait, Ends: c.Ends(),
					Live: func(ctx context.Context) error { asked++; return accounts.Live(ctx, w.Accounts, c) }})
				ended <- err
			}()
			for ; w.Feed.Waiting() == 0; time.Sleep(time.Millisecond) {
			}
			end(w, all, k)
			if err := <-ended; err == nil || asked == 0 || asked > 2 {
				t.Errorf("after %d questions it ends with %v", asked, err)
			}
		})
	}
}
