package operator_test

import (
	"slices"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/operator"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/ports"
	. "agentproxy/test/apptest"
)

func TestAgentsAreSorted(t *testing.T) {
	t.Parallel()
	d := open(t)
	poor, rich, middle := d.Register(), d.RegisterFunded(90), d.RegisterFunded(40)
	d.Buy(middle, Remote) // held money counts in the balance, and it has a session
	ended := d.Buy(poor, Static)
	_, err := d.Sessions.Terminate(t.Context(), poor, ended.ID) // after it the poor one has paid the most
	OK(t, err)
	money := operator.NewMoney(d.store, d.Clock, d.Catalog)
	for order, want := range map[ports.AgentOrder][]string{
		"":                {middle, rich, poor},
		ports.ByBalance:   {rich, middle, poor},
		ports.ByCharged:   {poor, middle, rich},
		ports.ByRecharged: {middle, rich, poor}, // all the same: newest first
		ports.ByLive:      {middle, rich, poor},
	} {
		var got []string
		for page := 1; page <= 3; page++ {
			list, err := money.Agents(t.Context(), ports.AgentFilter{Order: order, Status: account.Active}, domain.Page{Number: page, Size: 1})
			OK(t, err)
			for _, a := range list.Items {
				got = append(got, a.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %q the agents are %v, want %v", order, got, want)
		}
	}
}

func TestGrowthCountsRegistrationsByDay(t *testing.T) {
	t.Parallel()
	d := open(t)
	service := accounts.New(accounts.Config{KeepOriginDays: 90}, d.base(), nil, d.Transitions, d.Hub)
	register := func(n int, r accounts.Register) {
		for range n {
			r.Name = "agent"
			_, err := service.Register(t.Context(), r)
			OK(t, err)
		}
	}
	from := func(address string) accounts.Register {
		return accounts.Register{Origin: account.Origin{Addr: addr(address)}}
	}
	today := billing.Day(d.Clock.Now())
	d.Clock.Set(today.Add(-time.Second)) // the last second of the day before
	register(2, from("192.0.2.1"))
	d.Clock.Set(today)
	register(3, from("2001:db8::1"))
	register(1, accounts.Register{Operator: true}) // did not register itself
	days, err := operator.NewMoney(d.store, d.Clock, d.Catalog).Growth(t.Context(), 3)
	OK(t, err)
	var got []int
	for i, g := range days {
		if !g.Day.Equal(today.AddDate(0, 0, i-2)) {
			t.Errorf("day %d is %s", i, g.Day)
		}
		got = append(got, g.Registered)
	}
	if !slices.Equal(got, []int{0, 2, 3}) {
		t.Errorf("the registrations are %v", got)
	}
}
