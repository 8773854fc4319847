package accounts_test

import (
	"context"
	"strings"
	"testing"

	"agentproxy/domain/account"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// readsStore counts the transactions that read.
type readsStore struct {
	ports.Store
	reads int
}

func (s *readsStore) Read(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	s.reads++
	return s.Store.Read(ctx, fn)
}

func (s *readsStore) View(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	s.reads++
	return s.Store.View(ctx, reads, fn)
}

// What has not the form of an API key costs no look into the database; the limit of wrong ones
// counts it.
func TestAMistypedKeyIsNotLookedUp(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	r := w.RegisterCredentials()
	store := &readsStore{Store: w.Store.Store}
	w.Store.Store = store
	random := r.APIKey[len(account.APIKeyPrefix):][:account.KeyRandom]
	for key, reads := range map[string]bool{
		r.APIKey:                      true,
		account.APIKeyPrefix + random: true, // as early versions made them
		account.EarlyAPIKey(strings.Repeat("a", account.KeyRandom)):                   true,
		strings.Replace(r.APIKey, random, strings.Repeat("b", account.KeyRandom), 1):  false,
		r.APIKey[:len(r.APIKey)-1] + "g":                                              false,
		r.APIKey + "0":                                                                false,
		account.APIKeyPrefix + random[1:]:                                             false,
		account.APIKeyPrefix + "wrong":                                                false,
		account.APIKeyPrefix + strings.Repeat("a", len(r.APIKey)-len("ak_")):          false,
		account.APIKeyPrefix + strings.Repeat("\u00e9", (len(r.APIKey)-len("ak_"))/2): false,
	} {
		store.reads = 0
		tries := 0
		_, err := w.Accounts.AuthenticateKey(t.Context(), key, func() error { tries++; return nil })
		if key != r.APIKey {
			apptest.ErrorIs(t, err, account.ErrInvalidKey)
		} else {
			apptest.OK(t, err)
		}
		allowed := 1
		if key == r.APIKey { // a stranger cannot make its tag up
			allowed = 0
		}
		if tries != allowed || (store.reads > 0) != reads {
			t.Errorf("%q was checked %d times and read the database %d times", key, tries, store.reads)
		}
	}
}
