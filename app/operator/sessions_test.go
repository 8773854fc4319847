package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"agentproxy/app/operator"
	"agentproxy/domain"
	"agentproxy/domain/audit"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	. "agentproxy/test/apptest"
)

func (d desk) sessions() *operator.Sessions {
	return operator.NewSessions(d.store, d.Clock, d.IDs, d.Transitions, d.Hub)
}

func TestSessionsOfAllAgentsAreListed(t *testing.T) {
	t.Parallel()
	d := open(t)
	a, b := d.RegisterFunded(20), d.RegisterFunded(20)
	first, second, third := d.Buy(a, Local), d.Buy(b, RemoteStatic), d.Buy(b, Local)
	_, err := d.Sessions.Terminate(t.Context(), b, third.ID)
	OK(t, err)
	for _, c := range []struct {
		name string
		f    ports.OverviewFilter
		page domain.Page
		want []string
		of   int
	}{
		{"all, the newest first", ports.OverviewFilter{}, domain.Page{Number: 1, Size: 10}, []string{third.ID, second.ID, first.ID}, 3},
		{"the second page", ports.OverviewFilter{}, domain.Page{Number: 2, Size: 2}, []string{first.ID}, 3},
		{"of an agent", ports.OverviewFilter{AgentID: a}, domain.Page{Number: 1, Size: 10}, []string{first.ID}, 1},
		{"that live", ports.OverviewFilter{Status: session.Active}, domain.Page{Number: 1, Size: 10}, []string{second.ID, first.ID}, 2},
		{"of a seller", ports.OverviewFilter{Provider: "remote"}, domain.Page{Number: 1, Size: 10}, []string{second.ID}, 1},
		{"of a product and status", ports.OverviewFilter{ProductNo: Local, Status: session.Terminated}, domain.Page{Number: 1, Size: 10}, []string{third.ID}, 1},
		{"of a type", ports.OverviewFilter{Type: session.Static}, domain.Page{Number: 1, Size: 10}, []string{second.ID}, 1},
	} {
		list, err := d.sessions().List(t.Context(), c.f, c.page)
		OK(t, err)
		var got []string
		for _, s := range list.Items {
			got = append(got, s.ID)
		}
		Equal(t, c.name, strings.Join(got, " "), strings.Join(c.want, " "))
		Equal(t, c.name+": in all", list.Total, c.of)
	}
	shown, err := d.sessions().Show(t.Context(), second.ID)
	if err != nil || len(shown.Orders) != 1 || shown.AgentID != b {
		t.Errorf("the session is %+v, %v", shown, err)
	}
	if _, err := d.sessions().Show(t.Context(), "sess_unknown"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an unknown session: %v", err)
	}
}

func TestTheOperatorEndsASession(t *testing.T) {
	t.Parallel()
	d := open(t)
	agent := d.RegisterFunded(20)
	before := d.Balance(agent)
	static := d.Buy(agent, Static)
	price := before - d.Balance(agent)
	d.Clock.Advance(10*session.Day + time.Hour)
	s, err := d.sessions().End(t.Context(), static.ID)
	if err != nil || s.Status != session.Terminated || s.Reason != session.OperatorRequest {
		t.Fatalf("it is %+v, %v", s, err)
	}
	Equal(t, "19 whole days of 30 are given back", s.Money.Refunded.Total(), billing.UnusedDays(price, 30, 19))
	if v := d.Read(agent, static.ID); v.Reason != session.OperatorRequest {
		t.Errorf("its agent reads %q", v.Reason)
	}
	if _, err := d.sessions().End(t.Context(), static.ID); !errors.Is(err, session.ErrOver) {
		t.Errorf("it ends twice: %v", err)
	}
	if _, err := d.sessions().End(t.Context(), "sess_unknown"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an unknown session: %v", err)
	}
}

// refund refunds a part of a session as an action of the operator.
func (d desk) refund(id string, percent int, ref string) (e billing.Entry, err error) {
	a := audit.Action{By: "ann", Name: "refund", Subject: id, Reason: "slow", Ref: ref}
	err = d.trail.Do(d.T.Context(), a, func(ctx context.Context) error {
		e, err = d.sessions().Refund(ctx, operator.Refund{SessionID: id, Percent: percent, Reason: "slow", Ref: ref})
		return err
	})
	return e, err
}

func TestARefundIsNeverMoreThanWasCharged(t *testing.T) {
	t.Parallel()
	d := open(t)
	agent := d.RegisterFunded(20)
	s := d.Buy(agent, Static)
	charged := d.Read(agent, s.ID).Money.Charged.Total()
	before := d.Balance(agent)
	e, err := d.refund(s.ID, 60, "")
	OK(t, err)
	Equal(t, "the first", e.Amount(), charged*60/100)
	if _, err := d.refund(s.ID, 41, ""); !errors.Is(err, operator.ErrRefund) {
		t.Errorf("101 %%: %v", err)
	}
	_, err = d.refund(s.ID, 40, "")
	OK(t, err)
	Equal(t, "in all", d.Balance(agent)-before, charged)
	for _, percent := range []int{1, 100} {
		if _, err := d.refund(s.ID, percent, ""); !errors.Is(err, operator.ErrRefund) {
			t.Errorf("%d %% more: %v", percent, err)
		}
	}
	// The days that are left of it are given back no second time.
	_, err = d.sessions().End(t.Context(), s.ID)
	OK(t, err)
	Equal(t, "after its end", d.Balance(agent)-before, charged)
	Equal(t, "actions", len(d.did()), 2)
}

func TestARefundIsRepeatedByItsReference(t *testing.T) {
	t.Parallel()
	d := open(t)
	agent := d.RegisterFunded(20)
	s, other := d.Buy(agent, Static), d.Buy(agent, Static)
	first, err := d.refund(s.ID, 10, "ticket: 7")
	OK(t, err)
	again, err := d.refund(s.ID, 10, "ticket: 7")
	if err != nil || again.ID != first.ID {
		t.Errorf("it is %+v, then %+v, %v", first, again, err)
	}
	for _, c := range []struct {
		id      string
		percent int
	}{{s.ID, 11}, {other.ID, 10}} {
		if _, err := d.refund(c.id, c.percent, "ticket: 7"); !errors.Is(err, domain.ErrInvalid) {
			t.Errorf("the reference for %v: %v", c, err)
		}
	}
	Equal(t, "actions", len(d.did()), 1)
	Equal(t, "refunded", d.Read(agent, s.ID).Money.Refunded.Total(), first.Amount())
}

func TestABadRefundIsRefused(t *testing.T) {
	t.Parallel()
	d := open(t)
	agent := d.RegisterFunded(20)
	unused := d.Buy(agent, Local)
	for _, in := range []operator.Refund{{SessionID: unused.ID, Percent: 0, Reason: "x"}, {SessionID: unused.ID, Percent: 101, Reason: "x"},
		{SessionID: unused.ID, Percent: -5, Reason: "x"}, {SessionID: unused.ID, Percent: 5, Reason: " "},
		{SessionID: unused.ID, Percent: 5, Reason: "x", Ref: string(make([]byte, 101))}, {SessionID: unused.ID, Percent: 50, Reason: "x"},
		{SessionID: "sess_unknown", Percent: 5, Reason: "x"}} {
		if _, err := d.sessions().Refund(t.Context(), in); err == nil {
			t.Errorf("%+v is booked", in)
		}
	}
}

// Trial credit that has ended meanwhile is not given back to spend.
func TestARefundOfEndedTrialCreditIsWrittenOff(t *testing.T) {
	t.Parallel()
	d := open(t)
	agent := d.Register()
	s := d.Buy(agent, Static)
	d.Clock.Advance(15 * session.Day)
	OK(t, d.Tasks.ExpireTrials(t.Context()))
	Equal(t, "before", d.Balance(agent), 0)
	_, err := d.refund(s.ID, 100, "")
	OK(t, err)
	Equal(t, "after", d.Balance(agent), 0)
}

// The operator sees what gateways reported and is not booked, by a read alone.
func TestTheOperatorSeesReportedUsage(t *testing.T) {
	t.Parallel()
	w := open(t)
	agent := w.RegisterFunded(100)
	id := w.Buy(agent, Local).ID
	w.Buy(agent, Local)
	w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "a", Up: 0, Want: 1000})
	w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "a", Up: 100, Connections: 1, Want: 900})
	OK(t, w.Traffic.Report(t.Context(), "r", []traffic.ReportPart{{Reports: []traffic.Report{
		{AgentID: agent, SessionID: id, Lease: "a", Up: 150, Down: 200, Connections: 2},
		{AgentID: agent, SessionID: id, Lease: "closed", Up: 150},
	}}}))
	u := w.sessions()
	before := w.Dump()
	d, err := u.Show(t.Context(), id)
	OK(t, err)
	list, err := u.List(t.Context(), ports.OverviewFilter{AgentID: agent}, domain.Page{Number: 1, Size: 10})
	OK(t, err)
	want := traffic.Usage{Limit: d.Bytes, Up: 150, Down: 200, Connections: 2, Leased: 650, UpdatedAt: d.Usage.UpdatedAt}
	Equal(t, "shown", d.Usage, want)
	Equal(t, "listed", list.Items[1].Usage, want)
	Equal(t, "the other", list.Items[0].Usage.Used(), 0)
	Equal(t, "the database", w.Dump(), before)
}
