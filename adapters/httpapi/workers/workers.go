// Package workers declares the operations on the workers of a session.
package workers

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/sessions"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// OneWorker is the path of every operation on one worker.
type OneWorker struct {
	sessionview.OneSession
	Name string `path:"name" doc:"The worker; case-sensitive."`
}

type makeWorkersInput struct {
	sessionview.OneSession
	Body makeWorkersBody
}

type makeWorkersBody struct {
	Count       value.Decimal `json:"count,omitempty" minimum:"1" maximum:"1000" multipleOf:"1" doc:"Makes w1 to wN."`
	Names       []string      `json:"names,omitempty" nullable:"true" maxItems:"1000" doc:"In place of count; each 1 to 32 letters, digits and _."`
	Country     string        `json:"country,omitempty" nullable:"true" doc:"An ISO 3166-1 alpha-2 code."`
	City        string        `json:"city,omitempty" nullable:"true" doc:"A city that the product offers in the country."`
	TTLSeconds  value.Decimal `json:"ttl_seconds,omitempty" minimum:"10" maximum:"86400" multipleOf:"1" doc:"How long an exit is kept."`
	Strict      bool          `json:"strict,omitempty" nullable:"true" doc:"A lost exit is not replaced."`
	UniqueExits bool          `json:"unique_exits,omitempty" nullable:"true" doc:"No two such workers share an exit."`
	MaxBytes    value.Decimal `json:"max_bytes,omitempty" minimum:"1" maximum:"9007199254740992" multipleOf:"1" doc:"The worker stops there; others go on."`

	Require *sessionview.Require `json:"require,omitempty" doc:"What exits must be; {}: anything. It stays with the session."`
}

// make returns what the body asks for.
func (b makeWorkersBody) make(agentID, sessionID string) (workers.Create, error) {
	m := workers.Create{AgentID: agentID, SessionID: sessionID, Names: b.Names, Country: b.Country, City: b.City,
		Settings: worker.Settings{Strict: b.Strict, Unique: b.UniqueExits}}
	var err error
	if m.Require, err = b.Require.Rule(); err != nil {
		return m, err
	}
	var count int64
	for _, f := range []struct {
		name        string
		Text        value.Decimal
		least, most int64
		to          *int64
	}{{"count", b.Count, 1, worker.MaxPerSession, &count}, {"max_bytes", b.MaxBytes, 1, 1 << 53, &m.MaxBytes},
		{"ttl_seconds", b.TTLSeconds, int64(worker.MinTTL / time.Second), int64(worker.MaxTTL / time.Second),
			(*int64)(&m.TTL)}} {
		if !f.Text.Given() {
			continue
		}
		n, err := domain.ParseDecimal(string(f.Text), 0)
		if err != nil || n < f.least || n > f.most {
			return m, domain.InvalidField(f.name, "must be a whole number of %d to %d", f.least, f.most)
		}
		*f.to = n
	}
	m.TTL *= time.Second
	switch {
	case (count > 0) == (b.Names != nil):
		return m, domain.InvalidField("names", "or count is required, and not both")
	case count > 0:
		for i := range count {
			m.Names = append(m.Names, "w"+strconv.FormatInt(i+1, 10))
		}
	}
	return m, nil
}

type workersInput struct {
	sessionview.OneSession
	endpoint.Paging
	Status worker.Status `query:"status" doc:"Only workers in this state."`
}

type rotateWorkerInput struct {
	endpoint.Idempotent
	OneWorker
	Body rotateWorkerBody
}

type rotateWorkerBody struct{ sessionview.RotateFields }

type workersReply struct {
	Items      []workerReply       `json:"items" doc:"This page."`
	Pagination endpoint.Pagination `json:"pagination" doc:"Where this page is in the list."`
}

type madeWorkersReply struct {
	Items []workerReply `json:"items" doc:"In the order that was asked for."`
}

type workerReply struct {
	Name          string                         `json:"name" doc:"For people."`
	Status        worker.Status                  `json:"status" doc:"Its state."`
	Proxy         *sessionview.Proxy             `json:"proxy" doc:"How to connect; null unless the session is active."`
	ExitIP        value.MaybeText                `json:"exit_ip" doc:"null where the seller does not report it."`
	Exit          *sessionview.ExitFacts         `json:"exit" doc:"null: not measured yet."`
	Location      sessionview.Location           `json:"location" doc:"Where the exits are."`
	TTLSeconds    value.MaybeInt                 `json:"ttl_seconds" doc:"null: the exit is kept."`
	ExitExpiresAt value.MaybeStamp               `json:"exit_expires_at" doc:"When its next new connection gets another exit; null: never."`
	Strict        bool                           `json:"strict" doc:"Whether a lost exit is not replaced."`
	MaxBytes      value.MaybeInt                 `json:"max_bytes" doc:"null: no limit of its own."`
	Usage         workerUsageReply               `json:"usage" doc:"A short form of GET /sessions/{session_id}/usage."`
	Health        sessionview.SessionHealthBrief `json:"health" doc:"A short form of GET /sessions/{session_id}/health."`
	Rotations     int                            `json:"rotations" doc:"How many rotations there were."`
	LastError     *workerErrorReply              `json:"last_error" doc:"What a connection of it last failed with; null if none did."`
	CreatedAt     value.Stamp                    `json:"created_at" doc:"When it was made."`
	LastUsedAt    value.MaybeStamp               `json:"last_used_at" doc:"null before the first use."`
}

type workerUsageReply struct {
	UsedBytes     int64 `json:"used_bytes" doc:"What was used, in bytes."`
	UploadBytes   int64 `json:"upload_bytes" doc:"From the agent to targets."`
	DownloadBytes int64 `json:"download_bytes" doc:"From targets to the agent."`
	Connections   int64 `json:"connections" doc:"How many there were."`
	OpenTunnels   int64 `json:"open_tunnels" doc:"On all replicas, a few seconds old."`
}

type workerErrorReply struct {
	At   value.Stamp `json:"at" doc:"When it failed."`
	Code string      `json:"code" doc:"For programs; it does not change."`
}

// ofWorkers is what an operation on workers of a live session can refuse with.
var ofWorkers = endpoint.And(sessionview.OfLive, ports.ErrProvider)

// UseCases are the use cases that the operations on workers call.
type UseCases struct {
	Workers  *workers.Service
	Sessions *sessions.Service
}

// service serves the operations on workers.
type service struct {
	UseCases
	sessionview.Gateway
	api *endpoint.API
}

// Declare declares the sticky identities of a session, whose proxies are at a gateway.
func Declare(a *endpoint.API, u UseCases, g sessionview.Gateway) {
	s := &service{u, g, a}
	const many, one = "/sessions/{session_id}/workers", "/sessions/{session_id}/workers/{name}"
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "make-workers", Keys: endpoint.OwnSession, Stores: true,
		Method: http.MethodPost, Path: many, Tag: "workers", Scope: account.SessionsWrite,
		Summary: "Make or read workers of a session",
		Doc: "A worker is a sticky exit of its own, used by its name in the proxy user name. Free, and without this call " +
			"its first use makes it. If one cannot be made, none is.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "All were there.",
			Data: madeWorkersReply{[]workerReply{exampleWorker}}},
			{Status: http.StatusCreated, Doc: "One or more are new.", Data: madeWorkersReply{[]workerReply{exampleWorker}}}},
		Refuses: endpoint.And(ofWorkers, worker.ErrDiffers, worker.ErrLimit, catalog.ErrOutOfStock, exit.ErrNotMet,
			ports.ErrTimeout),
		Example: map[string]any{"count": 50, "unique_exits": true},
	}, s.makeWorkers)
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "list-workers", Keys: endpoint.OwnSession,
		Method: http.MethodGet, Path: many, Tag: "workers", Scope: account.SessionsRead,
		Summary: "The workers of a session, by name", Doc: "Of any status, or of one.", Refuses: sessionview.OfSession,
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "A page of workers.",
			Data: workersReply{[]workerReply{exampleWorker}, endpoint.ExamplePagination}}},
	}, s.listWorkers)
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "get-worker", Keys: endpoint.OwnSession,
		Method: http.MethodGet, Path: one, Tag: "workers", Scope: account.SessionsRead,
		Summary: "One worker", Doc: "With its usage and health.",
		Refuses: endpoint.And(sessionview.OfSession, worker.ErrNotFound),
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The worker.", Data: exampleWorker}},
	}, s.worker)
	endpoint.DeclareResult(s.api, endpoint.Operation{
		ID: "rotate-worker", Keys: endpoint.OwnSession, Stores: true,
		Method: http.MethodPost, Path: one + "/rotate", Tag: "workers", Scope: account.SessionsWrite,
		Summary: "Give a worker another exit", Doc: "Open tunnels finish on the old one. Its next use may change its words.",
		Idempotent: true, EmptyBody: true, Refuses: endpoint.And(ofWorkers, worker.ErrNotFound, catalog.ErrOutOfStock,
			exit.ErrNotMet, ports.ErrTimeout),
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The worker with its new exit.", Data: exampleWorker}},
		Example: map[string]any{"reason": "http_403"},
	}, s.rotateWorker)
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "delete-worker", Keys: endpoint.OwnSession,
		Method: http.MethodDelete, Path: one, Tag: "workers", Scope: account.SessionsWrite,
		Summary: "Remove a worker",
		Doc:     "Its tunnels are cut and its exit is free. What it used stays in the session's usage.",
		Refuses: endpoint.And(sessionview.OfSession, worker.ErrNotFound),
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The worker as it was.", Data: exampleWorker}},
	}, s.deleteWorker)
}

func (s *service) makeWorkers(ctx context.Context, in *makeWorkersInput) (int, madeWorkersReply, error) {
	var r madeWorkersReply
	v, err := in.OneSession.Read(ctx, s.Sessions)
	if err != nil {
		return 0, r, err
	}
	m, err := in.Body.make(endpoint.Caller(ctx), v.ID)
	if err != nil {
		return 0, r, err
	}
	if err := endpoint.Charge(ctx, len(m.Names)); err != nil {
		return 0, r, err
	}
	list, made, err := s.Workers.Create(ctx, m)
	for _, w := range list {
		r.Items = append(r.Items, s.toWorker(v, w))
	}
	if made {
		return http.StatusCreated, r, err
	}
	return http.StatusOK, r, err
}

func (s *service) listWorkers(ctx context.Context, in *workersInput) (int, workersReply, error) {
	v, err := in.OneSession.Read(ctx, s.Sessions)
	if err != nil {
		return 0, workersReply{}, err
	}
	list, err := s.Workers.List(ctx, endpoint.Caller(ctx), v.ID, in.Status, in.Asked())
	if err != nil {
		return 0, workersReply{}, err
	}
	items, pagination := endpoint.PageOf(list, func(w workers.View) workerReply { return s.toWorker(v, w) })
	return http.StatusOK, workersReply{items, pagination}, nil
}

// readWorker reads a worker and its session, whose owner decides first.
func (s *service) readWorker(ctx context.Context, p OneWorker) (v sessions.View, w workers.View, err error) {
	if v, err = p.OneSession.Read(ctx, s.Sessions); err != nil {
		return v, w, err
	}
	if !worker.IsName(p.Name) { // what cannot be a name is not looked for
		return v, w, worker.ErrNotFound
	}
	w, err = s.Workers.Get(ctx, endpoint.Caller(ctx), v.ID, p.Name)
	return v, w, err
}

func (s *service) worker(ctx context.Context, in *OneWorker) (int, workerReply, error) {
	v, w, err := s.readWorker(ctx, *in)
	return http.StatusOK, s.toWorker(v, w), err
}

func (s *service) rotateWorker(ctx context.Context, in *rotateWorkerInput) (endpoint.Result[workerReply], error) {
	v, w, err := s.readWorker(ctx, in.OneWorker)
	if err != nil {
		return endpoint.Result[workerReply]{}, err
	}
	rule, err := in.Body.Require.Rule()
	if err != nil {
		return endpoint.Result[workerReply]{}, err
	}
	w, replayed, err := s.Workers.Rotate(ctx, workers.Rotate{AgentID: endpoint.Caller(ctx), SessionID: v.ID, Name: w.Name,
		Reason: in.Body.Reason, Call: in.Call(), Require: rule})
	return endpoint.Result[workerReply]{Status: http.StatusOK, Data: s.toWorker(v, w), Replayed: replayed}, err
}

func (s *service) deleteWorker(ctx context.Context, in *OneWorker) (int, workerReply, error) {
	v, w, err := s.readWorker(ctx, *in)
	if err == nil {
		err = s.Workers.Remove(ctx, endpoint.Caller(ctx), v.ID, w.Name)
	}
	return http.StatusOK, s.toWorker(v, w), err
}

// toWorker returns the reply that shows a worker to its agent.
func (s *service) toWorker(v sessions.View, w workers.View) workerReply {
	r := workerReply{Name: w.Name, Status: w.Status(),
		Location: sessionview.Location{Country: value.MaybeText(w.Location.Country),
			City: value.MaybeText(w.Location.City)}, TTLSeconds: -1, ExitExpiresAt: value.MaybeStamp(w.ExpiresAt()),
		Strict: w.Strict, MaxBytes: -1,
		Usage:  workerUsageReply{w.Usage.Bytes(), w.Usage.Up, w.Usage.Down, w.Usage.Connections, w.Open},
		Exit:   sessionview.MaybeExit(w.Measured),
		Health: sessionview.ToHealthBrief(w.Verdict), Rotations: w.Rotations, CreatedAt: value.Stamp(w.CreatedAt),
		LastUsedAt: value.MaybeStamp(w.LastUsedAt)}
	if w.Exit.IP.IsValid() {
		r.ExitIP = value.MaybeText(w.Exit.IP.String())
	}
	if w.TTL > 0 {
		r.TTLSeconds = value.MaybeInt(w.TTL / time.Second)
	}
	if w.MaxBytes > 0 {
		r.MaxBytes = value.MaybeInt(w.MaxBytes)
	}
	if !w.LastError.At.IsZero() {
		r.LastError = &workerErrorReply{value.Stamp(w.LastError.At), w.LastError.Code}
	}
	if !v.Status.Over() {
		base := traffic.User{SessionID: v.ID, Number: v.Rotation.Count}
		r.Proxy = new(s.ToGateway(v, fmt.Sprintf("%s-session-%s", base, w.Name)))
	}
	return r
}

var exampleWorker = workerReply{Name: "w1", Status: "active", Proxy: sessionview.ExampleDynamic.Proxy,
	ExitIP:   "203.0.113.7",
	Location: sessionview.ExampleDynamic.Location, TTLSeconds: 600,
	ExitExpiresAt: value.MaybeStamp(openapi.ExampleTime.Add(10 * time.Minute)),
	MaxBytes:      -1, Usage: workerUsageReply{1200, 200, 1000, 3, 1}, Health: sessionview.ExampleVerdict,
	CreatedAt:  value.Stamp(openapi.ExampleTime),
	LastUsedAt: value.MaybeStamp(openapi.ExampleTime)}
