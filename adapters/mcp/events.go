package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
)

// mostSeconds is how long a call of the tool waits at most: many clients give up after 30.
const mostSeconds = 25

// feedItems is how many events an answer has at most: more would not fit into its text.
const feedItems = 30

func waitForEvents(ctx context.Context, a *api, in struct {
	After   string      `json:"after"`
	Types   string      `json:"types"`
	Seconds json.Number `json:"seconds"`
}) (reply, error) {
	seconds := mostSeconds
	if in.Seconds != "" {
		n, err := strconv.Atoi(in.Seconds.String())
		if err != nil || n < 0 || n > mostSeconds {
			return reply{}, invalid("seconds", "must be 0 to 25")
		}
		seconds = n
	}
	query := url.Values{"limit": {strconv.Itoa(feedItems)}, "wait": {strconv.Itoa(seconds)}}
	for name, text := range map[string]string{"after": in.After, "types": in.Types} {
		if text != "" {
			query.Set(name, text)
		}
	}
	var found struct {
		Items []struct {
			Type      string            `json:"type"`
			Timestamp string            `json:"timestamp"`
			Data      map[string]string `json:"data"`
		} `json:"items"`
		Next string `json:"next"`
	}
	if err := a.get(ctx, "/events", query, &found); err != nil {
		return reply{}, err
	}
	next := "Call wait_for_events with this next as after for what follows."
	if len(found.Items) > 0 {
		switch found.Items[len(found.Items)-1].Type {
		case "recharge.paid":
			next = "The money is there: call quote or create_session; wait_for_events with this next as after for what follows."
		case "session.active":
			next = "Call connect with the session_id of the event; wait_for_events with this next as after for what follows."
		}
	}
	return reply{data: map[string]any{"items": found.Items, "next": found.Next}, next: next}, nil
}
