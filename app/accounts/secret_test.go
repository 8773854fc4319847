package accounts_test

import (
	"testing"

	"agentproxy/domain/account"
	"agentproxy/test/apptest"
)

func TestCredentialsOutliveTheirRootSecret(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	old := w.RegisterCredentials()
	w.ReplaceRoot(apptest.OtherRootSecret, apptest.RootSecret)
	caller, err := w.Accounts.AuthenticateKey(t.Context(), old.APIKey, nil)
	apptest.OK(t, err)
	apptest.Equal(t, "the agent", caller.AgentID, old.Agent.ID)
	_, err = w.IssueToken(old)
	apptest.OK(t, err)
	_, err = w.Accounts.AuthenticateKey(t.Context(), old.APIKey+"x", nil)
	apptest.ErrorIs(t, err, account.ErrInvalidKey)
	fresh := w.RegisterCredentials()
	w.ReplaceRoot(apptest.OtherRootSecret)
	_, err = w.Accounts.AuthenticateKey(t.Context(), fresh.APIKey, nil)
	apptest.OK(t, err)
	_, err = w.IssueToken(old)
	apptest.ErrorIs(t, err, account.ErrInvalidKey)
}
