package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
)

// workerData is what the commands read of a worker.
type workerData struct {
	Name     string  `json:"name"`
	Status   string  `json:"status"`
	ExitIP   *string `json:"exit_ip"`
	Location struct {
		Country *string `json:"country"`
	} `json:"location"`
	Usage struct {
		Bytes       int64 `json:"used_bytes"`
		Connections int64 `json:"connections"`
	} `json:"usage"`
	Health struct {
		Score int    `json:"health_score"`
		Risk  string `json:"risk_level"`
	} `json:"health"`
}

func (d workerData) row() []string {
	return []string{d.Name, d.Status, text(d.Location.Country), text(d.ExitIP), strconv.FormatInt(d.Usage.Bytes, 10),
		strconv.FormatInt(d.Usage.Connections, 10), strconv.Itoa(d.Health.Score), d.Health.Risk}
}

var workerHeader = []string{"worker", "status", "country", "exit", "bytes", "connections", "health", "risk"}

type workersCommand struct {
	one
	Count   int      `help:"Make this many, named w1 and so on; those that are there stay as they are."`
	Names   []string `help:"Make workers of these names, separated by commas."`
	Unique  bool     `help:"No two of them share an exit."`
	Country string   `help:"Of the exits; ISO 3166-1 alpha-2."`
}

// Run makes workers, or lists all of them.
func (o workersCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	body := map[string]any{}
	if o.Count != 0 {
		body["count"] = o.Count
	}
	if len(o.Names) > 0 {
		body["names"] = o.Names
	}
	making := len(body) > 0
	if o.Unique {
		body["unique_exits"] = true
	}
	if o.Country != "" {
		body["country"] = o.Country
	}
	if !making && len(body) > 0 {
		return fmt.Errorf("%w: --unique and --country go with --count or --names", errMisuse)
	}
	path := "/sessions/" + url.PathEscape(o.Session) + "/workers"
	var items []json.RawMessage
	if making {
		items, err = service.items(ctx, "POST", path, body)
	} else {
		items, err = service.pages(ctx, path)
	}
	if err != nil {
		return err
	}
	return showWorkers(c, s, items)
}

// items runs an operation that answers a list.
func (s *service) items(ctx context.Context, method, path string, body any) ([]json.RawMessage, error) {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	_, err := s.read(ctx, method, path, "", body, &list)
	return list.Items, err
}

// pageSize is how many items the API answers at most.
const pageSize = 100

// pages reads all pages of a list.
func (s *service) pages(ctx context.Context, path string) (all []json.RawMessage, err error) {
	for page := 1; ; page++ {
		list, err := s.items(ctx, "GET", fmt.Sprintf("%s?page_size=%d&page=%d", path, pageSize, page), nil)
		if err != nil {
			return nil, err
		}
		if all = append(all, list...); len(list) < pageSize {
			return all, nil
		}
	}
}

// showWorkers prints workers, their passwords masked.
func showWorkers(c *options, s streams, items []json.RawMessage) error {
	rows := make([][]string, len(items))
	for i, item := range items {
		var d workerData
		if err := json.Unmarshal(item, &d); err != nil {
			return fmt.Errorf("read a worker: %w", err)
		}
		rows[i] = d.row()
	}
	if items == nil {
		items = []json.RawMessage{}
	}
	data, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) { table(w, workerHeader, rows) })
}

// rotateWorker gives a worker another exit and prints the worker.
func (o one) rotateWorker(ctx context.Context, c *options, s streams, name string, body any) error {
	service, err := open()
	if err != nil {
		return err
	}
	var d workerData
	path := "/sessions/" + url.PathEscape(o.Session) + "/workers/" + url.PathEscape(name) + "/rotate"
	data, err := service.read(ctx, "POST", path, "", body, &d)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) { table(w, workerHeader, [][]string{d.row()}) })
}
