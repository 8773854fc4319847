package telemetry

import (
	"context"
	"net/http"
	"strconv"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/telemetry"
	"agentproxy/domain/account"
	"agentproxy/domain/health"
)

// sessionHealthReply is the health of a session.
type sessionHealthReply struct {
	sessionview.SessionHealthBrief
	Reason            health.Reason            `json:"reason" doc:"What the recommendation follows from most."`
	Confidence        value.Ratio              `json:"confidence" doc:"How much evidence the score rests on."`
	RetryAfterSeconds value.MaybeInt           `json:"retry_after_seconds" doc:"With the recommendation pause: how long. null otherwise."`
	WorstHosts        []worstHostReply         `json:"worst_hosts" doc:"At most five target hosts, the worst first."`
	Stats             healthStatsReply         `json:"stats" doc:"What the score is made from."`
	Workers           *sessionview.WorkerCount `json:"workers" doc:"null without workers."`
}

type worstHostReply struct {
	Host      string         `json:"host" doc:"The host name or address."`
	Events    int64          `json:"events" doc:"How many events there were."`
	BadWeight value.Hundreds `json:"bad_weight" doc:"The weight of its bad events within the health score."`
}

// figuresReply are the counters of what the agent reported.
type figuresReply struct {
	TotalEvents  int64            `json:"total_events" doc:"Events of every type."`
	ByType       byTypeReply      `json:"by_type" doc:"How many events there were of each type."`
	StatusCodes  map[string]int64 `json:"status_codes" doc:"The 32 codes most met."`
	AvgLatencyMS value.Hundreds   `json:"avg_latency_ms" doc:"0 without latencies."`
	P95LatencyMS int              `json:"p95_latency_ms" doc:"0 without latencies."`
	LastEventAt  value.MaybeStamp `json:"last_event_at" doc:"When the last event occurred; null before the first."`
}

// FigureFields is figuresReply under an exported name, by which huma reads it where it is embedded.
type FigureFields = figuresReply

// observedReply holds the counters of what the gateway observed.
type observedReply struct {
	TotalEvents int64            `json:"total_events" doc:"Events of every type."`
	ByType      byTypeReply      `json:"by_type" doc:"How many events there were of each type."`
	StatusCodes map[string]int64 `json:"status_codes" doc:"How many answers had each HTTP status."`
	LastEventAt value.MaybeStamp `json:"last_event_at" doc:"When the last event occurred; null before the first."`
}

type byTypeReply struct {
	Success   int64 `json:"success" doc:"Events of this type."`
	HTTPError int64 `json:"http_error" doc:"Events of this type."`
	Captcha   int64 `json:"captcha" doc:"Events of this type."`
	Timeout   int64 `json:"timeout" doc:"Events of this type."`
	Block     int64 `json:"block" doc:"Events of this type."`
	RateLimit int64 `json:"rate_limit" doc:"Events of this type."`
	Custom    int64 `json:"custom" doc:"Events of this type."`
}

type healthStatsReply struct {
	FigureFields
	Rotations   int64         `json:"rotations" doc:"How many rotations there were."`
	Observed    observedReply `json:"observed" doc:"What the gateway observed on the way to the target."`
	CurrentExit exitReply     `json:"current_exit" doc:"The same since the last rotation."`
}

type exitReply struct {
	FigureFields
	Observed observedReply `json:"observed" doc:"What the gateway saw by itself."`
}

// declareHealth declares what shows how the exit of a session fares.
func (s *service) declareHealth() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-session-health",
		Keys:    endpoint.OwnSession,
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}/health",
		Tag:     "sessions",
		Summary: "How the current exit fares, and what to do",
		Doc:     "Made from what the agent reported and from what the gateway saw. docs/health.md has the formula.",
		Scope:   account.SessionsRead,
		Refuses: sessionview.OfSession,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The health at this moment.", Data: exampleHealth}},
	}, func(ctx context.Context, in *sessionview.OneSession) (int, sessionHealthReply, error) {
		v, err := s.Telemetry.Health(ctx, endpoint.Caller(ctx), in.SessionID)
		if err != nil {
			return 0, sessionHealthReply{}, err
		}
		endpoint.ChargeWorkers(ctx, v.Workers.Total)
		return http.StatusOK, toHealth(v), nil
	})
}

func toHealth(v telemetry.HealthView) sessionHealthReply {
	stats := v.State.Stats()
	r := sessionHealthReply{SessionHealthBrief: sessionview.ToHealthBrief(v.Verdict),
		Workers:    sessionview.ToWorkerCount(v.Workers),
		Reason:     v.Verdict.Reason,
		Confidence: value.Ratio(v.Verdict.Confidence), RetryAfterSeconds: -1,
		WorstHosts: value.Each(v.State.WorstHosts(v.At), func(h health.HostWeight) worstHostReply {
			return worstHostReply{h.Host, h.Events, value.Hundreds(h.BadWeight)}
		}),
		Stats: healthStatsReply{FigureFields: toFigures(stats.Session.Reported), Rotations: stats.Rotations,
			Observed:    toObserved(stats.Session.Observed),
			CurrentExit: exitReply{toFigures(stats.CurrentExit.Reported), toObserved(stats.CurrentExit.Observed)}}}
	if v.Verdict.Recommendation == health.Pause {
		r.RetryAfterSeconds = value.MaybeInt(v.Verdict.RetryAfterSeconds)
	}
	return r
}

func toFigures(f health.Figures) figuresReply {
	return figuresReply{f.TotalEvents, toByType(f.ByType), toCodes(f.StatusCodes), value.Hundreds(f.AvgLatencyMS),
		f.P95LatencyMS, value.MaybeStamp(f.LastEventAt)}
}

func toObserved(f health.Figures) observedReply {
	return observedReply{f.TotalEvents, toByType(f.ByType), toCodes(f.StatusCodes), value.MaybeStamp(f.LastEventAt)}
}

func toByType(m map[health.Type]int64) byTypeReply {
	return byTypeReply{m[health.Success], m[health.HTTPError], m[health.Captcha], m[health.Timeout],
		m[health.Block], m[health.RateLimit], m[health.Custom]}
}

func toCodes(m map[int]int64) map[string]int64 {
	out := make(map[string]int64, len(m))
	for code, n := range m {
		out[strconv.Itoa(code)] = n
	}
	return out
}

var (
	exampleFigures = figuresReply{
		10,
		byTypeReply{Success: 9, Block: 1},
		map[string]int64{"200": 9, "403": 1},
		240.5,
		812,
		value.MaybeStamp(openapi.ExampleTime),
	}
	exampleSeen   = observedReply{1, byTypeReply{Timeout: 1}, map[string]int64{}, value.MaybeStamp(openapi.ExampleTime)}
	exampleHealth = sessionHealthReply{
		SessionHealthBrief: sessionview.ExampleVerdict,
		Reason:             "block_rate",
		Confidence:         0.77,
		RetryAfterSeconds:  -1,
		WorstHosts: []worstHostReply{
			{"shop.example", 4, 0.97},
		},
		Stats: healthStatsReply{FigureFields: exampleFigures, Rotations: 1,
			Observed: exampleSeen, CurrentExit: exitReply{exampleFigures, exampleSeen}},
	}
)
