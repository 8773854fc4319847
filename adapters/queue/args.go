package queue

import (
	"encoding/json"
	"fmt"

	"github.com/riverqueue/river"

	"agentproxy/ports"
)

type driveOrders struct {
	SessionID string `json:"session_id"`
}

// Kind names the job in the database.
func (driveOrders) Kind() string { return ports.DriveOrdersJob }

// KindAliases returns the kinds under which earlier versions stored the same job.
func (driveOrders) KindAliases() []string { return []string{"provision", "release"} }

// retired is a job that earlier versions stored and that a due column replaced. It does nothing.
type retired struct{}

// Kind names the job in the database.
func (retired) Kind() string { return "retired" }

// KindAliases returns the kinds under which earlier versions stored such jobs.
func (retired) KindAliases() []string {
	return []string{"expire-session", "settle-session", "expire-trial"}
}

type deliver struct {
	DeliveryID string `json:"delivery_id"`
	Due        int64  `json:"due"` // microseconds
}

// Kind names the job in the database.
func (deliver) Kind() string { return ports.DeliverJob }

// runPass is one run of a periodic task. Its kind is stored.
type runPass struct {
	Name string `json:"name"`
}

// Kind names the job in the database.
func (runPass) Kind() string { return "pass" }

// argsOf returns the arguments of a job for River. It returns an error for an unknown kind.
func argsOf(j ports.Job) (river.JobArgs, error) {
	switch j.Kind {
	case ports.DriveOrdersJob:
		return driveOrders{j.SessionID}, nil
	case ports.DeliverJob:
		return deliver{j.DeliveryID, j.At.UnixMicro()}, nil
	}
	return nil, fmt.Errorf("no job of kind %q", j.Kind)
}

// subject returns the id that the arguments of a job name, or "". The arguments may be invalid,
// which may be why the job fails.
func subject(args []byte) string {
	var fields map[string]any
	if json.Unmarshal(args, &fields) != nil {
		return ""
	}
	for _, name := range []string{"session_id", "agent_id", "delivery_id", "name"} {
		if v, ok := fields[name].(string); ok {
			return v
		}
	}
	return ""
}
