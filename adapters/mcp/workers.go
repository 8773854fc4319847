package mcp

import (
	"context"
	"net/url"
)

// workerData is what the tools read of a worker.
type workerData struct {
	Name      string  `json:"name"`
	ExitIP    *string `json:"exit_ip"`
	Rotations int     `json:"rotations"`
	Proxy     *struct {
		Password string `json:"password"`
	} `json:"proxy"`
}

func (a *api) noteWorker(w workerData) {
	if w.Proxy != nil {
		a.secrets.add(w.Proxy.Password)
	}
}

// rotateWorker gives a worker another exit. The exit that it left is the one that it had before the call,
// unless the call repeats an earlier one: then the events may have it.
func rotateWorker(ctx context.Context, a *api, in turning) (reply, error) {
	path := pathOf(in.SessionID, "/workers/"+url.PathEscape(in.Worker))
	var before, after workerData
	if err := a.get(ctx, path, nil, &before); err != nil {
		return reply{}, err
	}
	a.noteWorker(before)
	if err := a.post(ctx, path+"/rotate", in.RequestID, in.body(), &after); err != nil {
		return reply{}, err
	}
	a.noteWorker(after)
	was := before.ExitIP
	if before.Rotations == after.Rotations {
		events, err := a.events(ctx, in.SessionID)
		if err != nil {
			return reply{}, err
		}
		was, _ = exits(events, in.Worker)
	}
	return reply{data: map[string]any{"session_id": in.SessionID, "worker": after.Name, "old_exit": was,
		"new_exit": after.ExitIP, "rotations": after.Rotations}, next: afterRotation}, nil
}
