// Package audit describes what the operator did: who, when and why.
package audit

import (
	"strings"
	"time"
	"unicode/utf8"

	"agentproxy/domain"
)

// IDPrefix begins the id of every action.
const IDPrefix = "act_"

// Via is the way in by which the operator acted.
type Via string

// The operator's ways in, and what the service does in the operator's place.
const (
	Command Via = "command"
	Console Via = "console"
	Service Via = "service"
)

// Action is one thing that the operator did. It is never changed.
type Action struct {
	ID      string
	At      time.Time
	By      string // who
	Via     Via
	Name    string // the command in words, such as "agent disable"
	Subject string // what it is about: an agent, a session, an order; empty for the service
	Reason  string // why; empty if none was given
	Ref     string // the operator's reference, unique for each Name; empty without one
	Details string // what was asked for beside that
}

// The bounds of an action, in characters.
const (
	MaxBy      = 100
	MaxSubject = 200
	MaxReason  = 500
	MaxRef     = 100
	MaxDetails = 500
)

// Keep is how long an action is kept.
const Keep = 730 * 24 * time.Hour

// Cleaned returns the action without spaces around its texts, or an error that names the text that is
// missing or too long.
func (a Action) Cleaned() (Action, error) {
	for _, f := range []struct {
		name string
		text *string
		most int
	}{
		{"by", &a.By, MaxBy}, {"subject", &a.Subject, MaxSubject}, {"reason", &a.Reason, MaxReason}, {"ref", &a.Ref, MaxRef},
	} {
		*f.text = strings.TrimSpace(*f.text)
		if !utf8.ValidString(*f.text) || utf8.RuneCountInString(*f.text) > f.most {
			return a, domain.InvalidField(f.name, "must have at most %d characters", f.most)
		}
	}
	if a.By == "" {
		return a, domain.InvalidField("by", "must name who acts")
	}
	if long := []rune(a.Details); len(long) > MaxDetails {
		a.Details = string(long[:MaxDetails-1]) + "…"
	}
	return a, nil
}

// Filter narrows a list of actions; empty fields do not.
type Filter struct {
	By      string
	Name    string
	Subject string
	From    time.Time // inclusive
	To      time.Time // exclusive
}
