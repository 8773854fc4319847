package httpapi

import (
	"context"
	"net/http"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

type overviewReply struct {
	Balance          money     `json:"balance"`
	Currency         string    `json:"currency" enum:"USD"`
	Held             money     `json:"held"`
	ActiveSessions   int       `json:"active_sessions"`
	CreatingSessions int       `json:"creating_sessions"`
	TotalSessions    int       `json:"total_sessions"`
	TotalSpent       money     `json:"total_spent" doc:"Charges less refunds."`
	TotalRecharged   money     `json:"total_recharged"`
	TrafficUsedGB    gigabytes `json:"traffic_used_gb"`
	EventsReported   int64     `json:"events_reported"`
	SuccessRate      ratio     `json:"success_rate" doc:"1 when nothing was scored."`
	Rotations        int64     `json:"rotations"`
}

type rangeQuery struct {
	Granularity string `query:"granularity" enum:"hour,day" doc:"day is the default."`
	StartDate   string `query:"start_date" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, inclusive. Seven days before the end is the default."`
	EndDate     string `query:"end_date" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, exclusive. The end of the current bucket is the default."`
}

type trafficBucketReply struct {
	Start         stamp     `json:"start"`
	UsedGB        gigabytes `json:"used_gb"`
	UsedBytes     int64     `json:"used_bytes"`
	UploadBytes   int64     `json:"upload_bytes"`
	DownloadBytes int64     `json:"download_bytes"`
	Connections   int64     `json:"connections"`
}

type trafficStatsReply struct {
	Granularity string               `json:"granularity" enum:"hour,day"`
	Items       []trafficBucketReply `json:"items" doc:"Oldest first, empty buckets included."`
}

type costBucketReply struct {
	Start     stamp  `json:"start"`
	Charged   money  `json:"charged"`
	Refunded  money  `json:"refunded"`
	Recharged money  `json:"recharged"`
	Currency  string `json:"currency" enum:"USD"`
}

type costStatsReply struct {
	Granularity string            `json:"granularity" enum:"hour,day"`
	Items       []costBucketReply `json:"items" doc:"Oldest first, empty buckets included."`
}

// declareStats declares the figures over all sessions.
func (s *billingService) declareStats() {
	op(s.api, operation{
		ID:      "get-overview",
		Method:  http.MethodGet,
		Path:    "/stats/overview",
		Tag:     "stats",
		Summary: "One look at the account",
		Doc:     "Sessions, traffic, balance and events of the account in one answer.",
		Scope:   account.StatsRead,
		OK:      []reply{{Status: ok, Doc: "The figures.", Data: exampleOverview}},
	}, func(ctx context.Context, _ *struct{}) (int, overviewReply, error) {
		o, err := s.Stats.Overview(ctx, caller(ctx))
		return ok, overviewReply{money(o.Balance), domain.Currency, money(o.Held), o.Active, o.Creating, o.Total,
			money(
				o.TotalSpent,
			), money(o.TotalRecharged), gigabytes(o.UsedBytes), o.EventsReported, ratio(o.SuccessRate), o.Rotations}, err
	})
	op(s.api, operation{
		ID:      "get-traffic-stats",
		Method:  http.MethodGet,
		Path:    "/stats/traffic",
		Tag:     "stats",
		Summary: "Traffic over time",
		Scope:   account.StatsRead,
		CSV:     true,
		Doc:     "At most 92 days. " + csvDoc,
		OK:      []reply{{Status: ok, Doc: "Traffic by bucket.", Data: exampleTraffic}},
	}, func(ctx context.Context, in *rangeQuery) (int, trafficStatsReply, error) {
		step, hours, err := s.series(ctx, in)
		return ok, trafficStatsReply{step, each(hours, func(h ports.Hour) trafficBucketReply {
			return trafficBucketReply{
				stamp(h.Start),
				gigabytes(h.Up + h.Down),
				h.Up + h.Down,
				h.Up,
				h.Down,
				h.Connections,
			}
		})}, err
	})
	op(s.api, operation{
		ID:      "get-cost-stats",
		Method:  http.MethodGet,
		Path:    "/stats/cost",
		Tag:     "stats",
		Summary: "Money over time",
		Scope:   account.StatsRead,
		CSV:     true,
		Doc:     "At most 92 days. " + csvDoc,
		OK:      []reply{{Status: ok, Doc: "Money by bucket.", Data: exampleCosts}},
	}, func(ctx context.Context, in *rangeQuery) (int, costStatsReply, error) {
		step, hours, err := s.series(ctx, in)
		return ok, costStatsReply{step, each(hours, func(h ports.Hour) costBucketReply {
			return costBucketReply{
				stamp(h.Start),
				money(h.Charged),
				money(h.Refunded),
				money(h.Recharged),
				domain.Currency,
			}
		})}, err
	})
}

// series reads the buckets that a query asks for.
func (s *billingService) series(ctx context.Context, in *rangeQuery) (string, []ports.Hour, error) {
	c := callIn(ctx)
	for _, name := range []string{"start_date", "end_date"} {
		if v, given := c.query(name); given && v == "" {
			return "", nil, domain.InvalidField(name, "must be YYYY-MM-DD or RFC 3339")
		}
	}
	r, err := ledger.ParseRange(in.Granularity, in.StartDate, in.EndDate, s.api.Clock.Now())
	if err != nil {
		return "", nil, err
	}
	hours, err := s.Stats.Series(ctx, caller(ctx), r)
	step := in.Granularity
	if step == "" {
		step = "day"
	}
	return step, hours, err
}

var (
	exampleOverview = overviewReply{
		Balance:        usd("9.75"),
		Currency:       domain.Currency,
		Held:           usd("0.22"),
		ActiveSessions: 1,
		TotalSessions:  3,
		TotalSpent:     usd("0.03"),
		TrafficUsedGB:  120_000_000,
		EventsReported: 10,
		SuccessRate:    0.9,
		Rotations:      1,
	}
	exampleTraffic = trafficStatsReply{
		"day",
		[]trafficBucketReply{
			{stamp(exampleTime.Truncate(24 * time.Hour)), 120_000_000, 120_000_000, 20_000_000, 100_000_000, 12},
		},
	}
	exampleCosts = costStatsReply{
		"day",
		[]costBucketReply{{stamp(exampleTime.Truncate(24 * time.Hour)), usd("0.03"), 0, 0, domain.Currency}},
	}
)
