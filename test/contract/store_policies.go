package contract

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var policyClaims = []claim{
	{"a policy is read back as it was written", policyRoundTrip},
	{"a policy is one session's", policyOfOne},
	{"a policy of an unknown session is refused", policyUnknown},
}

func policyRoundTrip(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"))
	for _, own := range []policy.Own{
		{},
		{Mode: policy.Enforce, Allow: []string{".example.com"}, Deny: []string{"192.0.2.0/24", `a"b`}, Ports: []string{"443", "8000-8010"}},
		{Mode: policy.Report, Deny: []string{"example.org"}},
		{Mode: policy.Off},
	} {
		if own.Mode != "" {
			update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Policies().Put(ctx, "sess_1", own) })
		}
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Policies().Get(ctx, "sess_1")
			if diff := cmp.Diff(own, got); diff != "" {
				t.Error(diff)
			}
			return err
		})
	}
}

func policyOfOne(t *testing.T, st ports.Store) {
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), dynamicSession("agt_1", "sess_2"))
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Policies().Put(ctx, "sess_1", policy.Own{Mode: policy.Enforce, Deny: []string{"example.com"}})
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Policies().Get(ctx, "sess_2")
		if got.Mode != "" || got.Deny != nil {
			t.Errorf("another session has %+v", got)
		}
		return err
	})
}

func policyUnknown(t *testing.T, st ports.Store) {
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.Policies().Put(ctx, "sess_1", policy.Own{Mode: policy.Off})
	})
	if !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
}
