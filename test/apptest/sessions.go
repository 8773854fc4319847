package apptest

import (
	"context"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain/session"
)

// Products of the embedded provider (Local, Static) and of the remote seller. The sellers
// deliver those named Async some time after the order.
const (
	Local        = "dyn_fast_1"
	LocalAsync   = "dyn_global_1"
	Static       = "sta_isp_1"
	StaticAsync  = "sta_city_1"
	Remote       = "dyn_sync"
	RemoteAsync  = "dyn_async"
	RemoteStatic = "sta_sync"
)

// Form returns a create request for a product: one GB, or one IP for 30 days in Germany.
func Form(product string) session.CreateRequest {
	f := session.CreateRequest{Type: "dynamic", ProductNo: product}
	if product[:3] == "sta" {
		f.Type, f.Quantity, f.Days, f.Location.Country = "static", new(1), new(30), "DE"
	}
	return f
}

// Create creates a session of Form.
func (w *World) Create(agent, product string) (sessions.Done, error) {
	return w.Sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: Form(product)})
}

// Buy creates a session of Form and stops the test if that fails.
func (w *World) Buy(agent, product string) sessions.View {
	w.T.Helper()
	d, err := w.Create(agent, product)
	OK(w.T, err)
	return d.View
}

// Read returns a session of an agent.
func (w *World) Read(agent, id string) sessions.View {
	w.T.Helper()
	v, err := w.Sessions.Read(context.Background(), agent, id)
	OK(w.T, err)
	return v
}

// Call returns a create call with an Idempotency-Key.
func Call(k string) idempotency.Call {
	return idempotency.Call{Key: k, Path: "/v1/sessions", Hash: []byte("body")}
}

// CreateWith creates a session of Form under an Idempotency-Key.
func (w *World) CreateWith(agent, product string, c idempotency.Call) (sessions.Done, error) {
	return w.Sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: Form(product), Call: c})
}

// BuyTimed creates a session of Form whose exits rotate at an interval.
func (w *World) BuyTimed(agent, product string, interval time.Duration) sessions.View {
	w.T.Helper()
	f := Form(product)
	f.RotationMode, f.RotationInterval = session.Timed, &interval
	d, err := w.Sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f})
	OK(w.T, err)
	return d.View
}

// BuySmall creates a dynamic session of 0.1 GB at 0.40 a GB.
func (w *World) BuySmall(agent string) sessions.View {
	w.T.Helper()
	f := Form(Local)
	f.Bytes = Gigabytes("0.1")
	d, err := w.Sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f})
	OK(w.T, err)
	return d.View
}
