package accounts

import (
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

type limitsReply struct {
	Tier     account.Tier       `json:"tier" doc:"A trial account has limits of its own."`
	Requests *requestsLeftReply `json:"requests" doc:"Calls of this API; null: unlimited."`
	Sessions sessionsLeftReply  `json:"sessions" doc:"Sessions that live at a time."`
	Gateway  gatewayBoundsReply `json:"gateway" doc:"Connections through all sessions together."`
	Stored   *storedLeftReply   `json:"stored_today" doc:"What the service stores for the account on a UTC day, mostly telemetry; null: unlimited."`
	Budget   budgetLeftReply    `json:"budget" doc:"What PUT /billing/budget leaves."`
	Balance  value.Money        `json:"balance" doc:"What can be spent, in US dollars; it includes the trial credit."`
}

type requestsLeftReply struct {
	PerMinute int         `json:"per_minute" doc:"The limit, and the burst."`
	Left      int         `json:"left" doc:"Calls that may be sent at once, after this one."`
	ResetAt   value.Stamp `json:"reset_at" doc:"When the whole limit is free again."`
}

type sessionsLeftReply struct {
	Live  int            `json:"live" doc:"How many there are."`
	Limit value.MaybeInt `json:"limit" doc:"How many there may be; null: unlimited."`
}

type gatewayBoundsReply struct {
	Connections value.MaybeInt `json:"connections" doc:"At a time; null: unlimited."`
	PerSecond   value.MaybeInt `json:"connections_per_second" doc:"New ones; null: unlimited."`
	Ports       *[]string      `json:"ports" nullable:"true" doc:"The only ports of targets, which may be ranges; null: all but those that the operator denies."`
}

type storedLeftReply struct {
	LimitBytes int64 `json:"limit_bytes" doc:"Of a day."`
	LeftBytes  int64 `json:"left_bytes" doc:"Of today."`
}

type budgetLeftReply struct {
	Paused bool        `json:"paused" doc:"Refuses every purchase."`
	Today  value.Limit `json:"left_today" doc:"In US dollars; null: no limit."`
	Total  value.Limit `json:"left_total" doc:"In US dollars; null: no limit."`
}

// declareLimits declares what an account may still do.
func (s *service) declareLimits() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "get-limits", Keys: endpoint.WholeKeys, Method: http.MethodGet, Path: "/account/limits", Tag: "account",
		Summary: "What the account may still do now",
		Doc:     "The limits in force with what is left of them, before a call is refused for one.",
		Scope:   account.AccountRead,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The limits.", Data: exampleLimits}},
	}, func(ctx context.Context, _ *struct{}) (int, limitsReply, error) {
		c := endpoint.CallIn(ctx)
		may, err := accounts.Allowed(ctx, s.Accounts, s.api.Limits.Stored, c.Caller.AgentID)
		r := toLimits(may)
		if c.Rate.Limit > 0 {
			r.Requests = &requestsLeftReply{c.Rate.Limit, c.Rate.Remaining, value.Stamp(c.Rate.ResetAt)}
		}
		return http.StatusOK, r, err
	})
}

func toLimits(a accounts.Allowance) limitsReply {
	r := limitsReply{
		Tier:     a.Tier,
		Sessions: sessionsLeftReply{a.Live, orNone(a.Sessions)},
		Gateway:  gatewayBoundsReply{Connections: orNone(a.Connections), PerSecond: orNone(a.PerSecond)},
		Budget:   budgetLeftReply{a.Wallet.Budget.Paused, value.Limit{Of: a.Daily}, value.Limit{Of: a.Total}},
		Balance:  value.Money(a.Wallet.Available.Total()),
	}
	if a.Ports != nil {
		r.Gateway.Ports = &a.Ports
	}
	if a.Stored != nil {
		r.Stored = &storedLeftReply{a.Stored.Limit, a.Stored.Left}
	}
	return r
}

// orNone returns a limit; 0, which is none, is null.
func orNone(limit int) value.MaybeInt {
	if limit == 0 {
		return -1
	}
	return value.MaybeInt(limit)
}

var (
	exampleLeft   = domain.MustMoney("4.75")
	exampleLimits = limitsReply{
		Tier:     account.TrialTier,
		Requests: &requestsLeftReply{600, 599, value.Stamp(openapi.ExampleTime)},
		Sessions: sessionsLeftReply{1, 100},
		Gateway:  gatewayBoundsReply{100, 10, &[]string{"80", "443", "8080", "8443"}},
		Stored:   &storedLeftReply{50_000_000, 49_998_000},
		Budget:   budgetLeftReply{Today: value.Limit{Of: &exampleLeft}},
		Balance:  openapi.USD("9.75"),
	}
)
