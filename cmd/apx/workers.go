package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"agentproxy/adapters/apiclient"
)

// workerRow returns a worker as a line of the list.
func workerRow(w apiclient.Worker) []string {
	return []string{w.Name, string(w.Status), text(w.Location.Country), text(w.ExitIP),
		strconv.FormatInt(w.Usage.UsedBytes, 10), strconv.Itoa(w.Usage.Connections), strconv.Itoa(w.Health.HealthScore),
		string(w.Health.RiskLevel)}
}

var workerHeader = []string{"worker", "status", "country", "exit", "bytes", "connections", "health", "risk"}

type workersCommand struct {
	one
	Count   int      `help:"Make this many, named w1 and so on; those that are there stay as they are."`
	Names   []string `help:"Make workers of these names, separated by commas."`
	Unique  bool     `help:"No two of them share an exit."`
	Country string   `help:"Of the exits; ISO 3166-1 alpha-2."`
	requirement
}

// Run makes workers, or lists all of them.
func (o workersCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	making := o.Count != 0 || len(o.Names) > 0
	if !making && (o.Unique || o.Country != "" || o.given()) {
		return fmt.Errorf("%w: --unique, --country and --require-… go with --count or --names", errMisuse)
	}
	rule, err := o.rule()
	if err != nil {
		return err
	}
	var items []json.RawMessage
	if making {
		var kept apiclient.Answer
		_, err = service.MakeWorkers(ctx, o.Session, apiclient.MakeWorkers{Count: o.Count, Names: o.Names,
			UniqueExits: o.Unique, Country: o.Country, Require: rule}, apiclient.Keep(&kept))
		items = itemsOf(kept)
	} else {
		items, err = service.workers(ctx, o.Session)
	}
	if err != nil {
		return err
	}
	return showWorkers(c, s, items)
}

// itemsOf returns the items of a list as the service wrote them.
func itemsOf(a apiclient.Answer) []json.RawMessage {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	_ = json.Unmarshal(a.Data(), &list) // the client read it before
	return list.Items
}

// workers returns all workers of a session as the service wrote them.
func (s *service) workers(ctx context.Context, session string) (all []json.RawMessage, err error) {
	in := apiclient.ListWorkers{PageSize: 100}
	for {
		var kept apiclient.Answer
		page, err := s.ListWorkers(ctx, session, in, apiclient.Keep(&kept))
		if err != nil {
			return nil, err
		}
		all = append(all, itemsOf(kept)...)
		if page.Pagination.Page >= page.Pagination.TotalPages { // this list has no cursors
			return all, nil
		}
		in.Page = page.Pagination.Page + 1
	}
}

// showWorkers prints workers, their passwords masked.
func showWorkers(c *options, s streams, items []json.RawMessage) error {
	rows := make([][]string, len(items))
	for i, item := range items {
		var w apiclient.Worker
		if err := json.Unmarshal(item, &w); err != nil {
			return fmt.Errorf("read a worker: %w", err)
		}
		rows[i] = workerRow(w)
	}
	if items == nil {
		items = []json.RawMessage{}
	}
	data, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return err
	}
	return c.showData(s, data, func(w io.Writer) { table(w, workerHeader, rows) })
}

// rotateWorker gives a worker another exit and prints the worker.
func (o rotateCommand) rotateWorker(
	ctx context.Context, c *options, s streams, service *service, in apiclient.RotateWorker,
) error {
	var kept apiclient.Answer
	d, err := service.RotateWorker(ctx, o.Session, o.Worker, in, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) { table(w, workerHeader, [][]string{workerRow(d)}) })
}
