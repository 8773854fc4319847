package policies_test

import (
	"strings"
	"testing"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

// The rules of a session reach its route, and another process is notified of them.
func TestThePolicyOfASession(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	other := apptest.Open(t, apptest.Options{Database: w.Database})
	r := w.RegisterCredentials()
	v := w.Buy(r.Agent.ID, apptest.Local)
	apptest.OK(t, other.Poll(t.Context()))
	notified := &apptest.ChangeRecorder{}
	other.Watch(notified)

	own, err := w.Policies.Get(t.Context(), r.Agent.ID, v.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "mode without a policy", own.Mode, policy.Off)

	own, err = w.Policies.Put(t.Context(), r.Agent.ID, v.ID, policy.Own{Deny: []string{".example.com"}})
	apptest.OK(t, err)
	apptest.Equal(t, "mode by default", own.Mode, policy.Enforce)
	apptest.OK(t, other.Poll(t.Context()))
	apptest.Equal(t, "notified", notified.Take(), "session "+v.ID)
	route, err := other.Traffic.Route(t.Context(), v.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "rule", route.Policy.Name("www.example.com", 443), ".example.com")
	apptest.Equal(t, "product", route.ProductNo, v.ProductNo)
	apptest.Equal(t, "reports", route.PolicyReports, false)

	_, err = w.Policies.Put(t.Context(), r.Agent.ID, v.ID, policy.Own{Mode: policy.Report, Deny: []string{"example.org"}})
	apptest.OK(t, err)
	route, err = w.Traffic.Route(t.Context(), v.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "reports", route.PolicyReports, true)
	apptest.Equal(t, "a rule that was replaced", route.Policy.Name("www.example.com", 443), "")

	_, err = w.Policies.Put(t.Context(), r.Agent.ID, v.ID, policy.Own{Deny: []string{"*.example.com"}})
	apptest.ErrorIs(t, err, domain.ErrInvalid)
	own, err = w.Policies.Get(t.Context(), r.Agent.ID, v.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "rules after a refusal", strings.Join(own.Deny, " "), "example.org")

	stranger := w.RegisterCredentials()
	_, err = w.Policies.Get(t.Context(), stranger.Agent.ID, v.ID)
	apptest.ErrorIs(t, err, session.ErrNotFound)
	_, err = w.Policies.Put(t.Context(), stranger.Agent.ID, v.ID, policy.Own{Mode: policy.Off})
	apptest.ErrorIs(t, err, session.ErrNotFound)
	_, err = w.Policies.Put(t.Context(), stranger.Agent.ID, v.ID, policy.Own{Mode: "x"})
	apptest.ErrorIs(t, err, session.ErrNotFound)

	_, err = w.Sessions.Terminate(t.Context(), r.Agent.ID, v.ID)
	apptest.OK(t, err)
	_, err = w.Policies.Put(t.Context(), r.Agent.ID, v.ID, policy.Own{Mode: policy.Off})
	apptest.ErrorIs(t, err, session.ErrOver)
	own, err = w.Policies.Get(t.Context(), r.Agent.ID, v.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "mode after the end", own.Mode, policy.Report)
}

// A session is bought with its policy, or not at all.
func TestACreateCallWithAPolicy(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	r := w.RegisterCredentials()
	create := sessions.Create{AgentID: r.Agent.ID, Form: session.CreateRequest{Type: session.Dynamic, ProductNo: apptest.Local},
		Policy: &policy.Own{Deny: []string{"example.com"}}}
	done, err := w.Sessions.Create(t.Context(), create)
	apptest.OK(t, err)
	own, err := w.Policies.Get(t.Context(), r.Agent.ID, done.View.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "policy", string(own.Mode)+" "+strings.Join(own.Deny, " "), "enforce example.com")

	create.Policy = &policy.Own{Deny: []string{"http://example.com"}}
	_, err = w.Sessions.Create(t.Context(), create)
	apptest.ErrorIs(t, err, domain.ErrInvalid)
	create.DryRun = true
	_, err = w.Sessions.Create(t.Context(), create)
	apptest.ErrorIs(t, err, domain.ErrInvalid)
	create.DryRun, create.Policy, create.Form.ProvisioningMode = false, &policy.Own{Mode: policy.Off}, session.Existing
	_, err = w.Sessions.Create(t.Context(), create)
	apptest.ErrorIs(t, err, domain.ErrInvalid)
}
