package billing

import (
	"context"
	"net/http"
	"time"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

type overviewReply struct {
	Balance          value.Money     `json:"balance" doc:"What can be spent, in US dollars; it includes the trial credit."`
	Currency         string          `json:"currency" enum:"USD" doc:"Of all amounts."`
	Held             value.Money     `json:"held" doc:"What is held for live sessions, in US dollars."`
	ActiveSessions   int             `json:"active_sessions" doc:"Sessions that can be used now."`
	CreatingSessions int             `json:"creating_sessions" doc:"Sessions that a provider still delivers."`
	TotalSessions    int             `json:"total_sessions" doc:"Sessions that were ever created."`
	TotalSpent       value.Money     `json:"total_spent" doc:"Charges less refunds."`
	TotalRecharged   value.Money     `json:"total_recharged" doc:"What was ever recharged, in US dollars."`
	TrafficUsedGB    value.Gigabytes `json:"traffic_used_gb" doc:"Traffic of all sessions in GB."`
	EventsReported   int64           `json:"events_reported" doc:"Events that the agent has reported."`
	SuccessRate      value.Ratio     `json:"success_rate" doc:"1 when nothing was scored."`
	Rotations        int64           `json:"rotations" doc:"How many rotations there were."`
}

type keyQuery struct {
	Key string `query:"key" maxLength:"64" doc:"Only sessions that this key bought."`
}

type rangeQuery struct {
	Key         string `query:"key" maxLength:"64" doc:"Only sessions that this key bought."`
	Granularity string `query:"granularity" enum:"hour,day" doc:"day is the default."`
	StartDate   string `query:"start_date" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, inclusive. Seven days before the end is the default."`
	EndDate     string `query:"end_date" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, exclusive. The end of the current bucket is the default."`
}

type trafficBucketReply struct {
	Start         value.Stamp     `json:"start" doc:"The first moment of the bucket."`
	UsedGB        value.Gigabytes `json:"used_gb" doc:"What was used, in GB of 1,000,000,000 bytes."`
	UsedBytes     int64           `json:"used_bytes" doc:"What was used, in bytes."`
	UploadBytes   int64           `json:"upload_bytes" doc:"From the agent to targets."`
	DownloadBytes int64           `json:"download_bytes" doc:"From targets to the agent."`
	Connections   int64           `json:"connections" doc:"How many there were."`
}

type trafficStatsReply struct {
	Granularity string               `json:"granularity" enum:"hour,day" enumName:"Granularity" doc:"The length of a bucket."`
	Items       []trafficBucketReply `json:"items" doc:"Oldest first, empty buckets included."`
}

type costBucketReply struct {
	Start     value.Stamp `json:"start" doc:"The first moment of the bucket."`
	Charged   value.Money `json:"charged" doc:"What was charged, in US dollars."`
	Refunded  value.Money `json:"refunded" doc:"What was given back, in US dollars."`
	Recharged value.Money `json:"recharged" doc:"What was recharged, in US dollars."`
	Currency  string      `json:"currency" enum:"USD" doc:"Of all amounts."`
}

type costStatsReply struct {
	Granularity string            `json:"granularity" enum:"hour,day" enumName:"Granularity" doc:"The length of a bucket."`
	Items       []costBucketReply `json:"items" doc:"Oldest first, empty buckets included."`
}

// declareStats declares the figures over all sessions.
func (s *service) declareStats() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "get-overview", Keys: endpoint.AnyKey,
		Usage:   true,
		Method:  http.MethodGet,
		Path:    "/stats/overview",
		Tag:     "stats",
		Summary: "One look at the account",
		Doc: "Sessions, traffic, balance and events of the account in one answer. With key, and for a key with own, those " +
			"of its sessions: the balance is what its limits leave, and of the events those of live sessions count.",
		Scope: account.StatsRead,
		OK:    []endpoint.Reply{{Status: http.StatusOK, Doc: "The figures.", Data: exampleOverview}},
	}, func(ctx context.Context, in *keyQuery) (int, overviewReply, error) {
		read := func() (ledger.Overview, error) { return s.Stats.Overview(ctx, endpoint.Caller(ctx)) }
		if key := endpoint.KeyOf(ctx, in.Key); key != "" {
			read = func() (ledger.Overview, error) { return s.Stats.KeyOverview(ctx, endpoint.Caller(ctx), key) }
		}
		o, err := read()
		return http.StatusOK, overviewReply{value.Money(o.Balance), domain.Currency, value.Money(o.Held), o.Active,
			o.Creating, o.Total, value.Money(o.TotalSpent), value.Money(o.TotalRecharged), value.Gigabytes(o.UsedBytes),
			o.EventsReported, value.Ratio(o.SuccessRate), o.Rotations}, err
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "get-traffic-stats", Keys: endpoint.AnyKey,
		Usage:   true,
		Method:  http.MethodGet,
		Path:    "/stats/traffic",
		Tag:     "stats",
		Summary: "Traffic over time",
		Scope:   account.StatsRead,
		CSV:     true,
		Doc:     "At most 92 days. " + endpoint.CSVDoc,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "Traffic by bucket.", Data: exampleTraffic}},
	}, func(ctx context.Context, in *rangeQuery) (int, trafficStatsReply, error) {
		step, hours, err := s.series(ctx, in)
		return http.StatusOK, trafficStatsReply{step, value.Each(hours, func(h ports.Hour) trafficBucketReply {
			return trafficBucketReply{
				value.Stamp(h.Start),
				value.Gigabytes(h.Up + h.Down),
				h.Up + h.Down,
				h.Up,
				h.Down,
				h.Connections,
			}
		})}, err
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "get-cost-stats", Keys: endpoint.AnyKey,
		Usage:   true,
		Method:  http.MethodGet,
		Path:    "/stats/cost",
		Tag:     "stats",
		Summary: "Money over time",
		Scope:   account.StatsRead,
		CSV:     true,
		Doc:     "At most 92 days. " + endpoint.CSVDoc,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "Money by bucket.", Data: exampleCosts}},
	}, func(ctx context.Context, in *rangeQuery) (int, costStatsReply, error) {
		step, hours, err := s.series(ctx, in)
		return http.StatusOK, costStatsReply{step, value.Each(hours, func(h ports.Hour) costBucketReply {
			return costBucketReply{
				value.Stamp(h.Start),
				value.Money(h.Charged),
				value.Money(h.Refunded),
				value.Money(h.Recharged),
				domain.Currency,
			}
		})}, err
	})
}

// series reads the buckets that a query asks for.
func (s *service) series(ctx context.Context, in *rangeQuery) (string, []ports.Hour, error) {
	c := endpoint.CallIn(ctx)
	for _, name := range []string{"start_date", "end_date"} {
		if v, given := c.Query(name); given && v == "" {
			return "", nil, domain.InvalidField(name, "must be YYYY-MM-DD or RFC 3339")
		}
	}
	r, err := ledger.ParseRange(in.Granularity, in.StartDate, in.EndDate, s.api.Clock.Now())
	if err != nil {
		return "", nil, err
	}
	hours, err := s.Stats.KeySeries(ctx, endpoint.Caller(ctx), endpoint.KeyOf(ctx, in.Key), r)
	step := in.Granularity
	if step == "" {
		step = "day"
	}
	return step, hours, err
}

var (
	exampleOverview = overviewReply{
		Balance:        openapi.USD("9.75"),
		Currency:       domain.Currency,
		Held:           openapi.USD("0.22"),
		ActiveSessions: 1,
		TotalSessions:  3,
		TotalSpent:     openapi.USD("0.03"),
		TrafficUsedGB:  120_000_000,
		EventsReported: 10,
		SuccessRate:    0.9,
		Rotations:      1,
	}
	exampleTraffic = trafficStatsReply{
		"day",
		[]trafficBucketReply{
			{value.Stamp(openapi.ExampleTime.Truncate(24 * time.Hour)), 120_000_000, 120_000_000, 20_000_000, 100_000_000, 12},
		},
	}
	exampleCosts = costStatsReply{
		"day",
		[]costBucketReply{{value.Stamp(openapi.ExampleTime.Truncate(24 * time.Hour)), openapi.USD("0.03"), 0, 0,
			domain.Currency}},
	}
)
