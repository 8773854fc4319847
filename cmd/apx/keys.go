package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"agentproxy/adapters/apiclient"
)

// keyCommand is the commands on the keys of the account.
type keyCommand struct {
	Ls  keyLsCommand  `cmd:"" help:"List keys with what they spent and may spend."`
	Add keyAddCommand `cmd:"" help:"Issue a key, which is printed once."`
	Set keySetCommand `cmd:"" help:"Change the limits of a key; what is not given stays."`
	Rm  keyRmCommand  `cmd:"" help:"End a key, and the keys that it issued."`
}

// keyLimits are the limits of a key as flags.
type keyLimits struct {
	Total       string   `help:"US dollars that it may spend ever."`
	Daily       string   `help:"US dollars of a UTC day."`
	PerPurchase string   `help:"US dollars of one purchase."`
	Product     []string `help:"A product that it may buy; again for more."`
	MaxSessions int      `help:"Live sessions at a time."`
	Own         bool     `help:"Sessions of other keys do not exist for it."`
}

// budget returns the limits on money.
func (l keyLimits) budget() (b apiclient.KeyBudgetRequest, err error) {
	b = apiclient.KeyBudgetRequest{Total: json.Number(l.Total), Daily: json.Number(l.Daily),
		PerPurchase: json.Number(l.PerPurchase)}
	if !areNumbers(b.Total, b.Daily, b.PerPurchase) {
		return b, fmt.Errorf("%w: a budget must be a number", errMisuse)
	}
	return b, nil
}

type keyLsCommand struct{}

// Run lists the keys.
func (keyLsCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	var kept apiclient.Answer
	list, err := service.ListKeys(ctx, apiclient.ListKeys{PageSize: 100}, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) { keyTable(w, list.Items...) })
}

func keyTable(w io.Writer, keys ...apiclient.Key) {
	var rows [][]string
	for _, k := range keys {
		rows = append(rows, []string{k.KeyID, k.Name, k.Spent.String(), k.Held.String(), text(k.Left), string(k.Sessions),
			strconv.Itoa(k.SessionsLive)})
	}
	table(w, []string{"key", "name", "spent", "held", "left", "sees", "live"}, rows)
}

type keyAddCommand struct {
	Name       string   `arg:"" help:"For people."`
	Permission []string `help:"A permission; again for more. None: all that the caller has."`
	keyLimits
}

// Run issues a key and prints it.
func (k keyAddCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	budget, err := k.budget()
	if err != nil {
		return err
	}
	in := apiclient.CreateKey{Name: k.Name, Products: k.Product, MaxSessions: k.MaxSessions, Budget: budget}
	for _, p := range k.Permission {
		in.Permissions = append(in.Permissions, apiclient.Permission(p))
	}
	if k.Own {
		in.Sessions = "own"
	}
	var kept apiclient.Answer
	issued, err := service.CreateKey(ctx, in, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) { fmt.Fprintln(w, issued.APIKey) })
}

type keySetCommand struct {
	Key       string `arg:"" help:"The id of the key."`
	Unlimited bool   `help:"Remove every limit that is not given."`
	keyLimits
}

// Run changes the limits of a key.
func (k keySetCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	var in apiclient.ChangeKey
	if k.Unlimited {
		in = apiclient.ChangeKey{Budget: apiclient.Null[apiclient.KeyBudgetRequest](), Products: apiclient.Null[[]string](),
			MaxSessions: apiclient.Null[int](), Sessions: apiclient.Null[apiclient.KeyReach]()}
	}
	budget, err := k.budget()
	if err != nil {
		return err
	}
	if budget != (apiclient.KeyBudgetRequest{}) {
		in.Budget = apiclient.Set(budget)
	}
	if len(k.Product) > 0 {
		in.Products = apiclient.Set(k.Product)
	}
	if k.MaxSessions != 0 {
		in.MaxSessions = apiclient.Set(k.MaxSessions)
	}
	if k.Own {
		in.Sessions = apiclient.Set(apiclient.KeyReach("own"))
	}
	var kept apiclient.Answer
	changed, err := service.ChangeKey(ctx, k.Key, in, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) { keyTable(w, changed) })
}

type keyRmCommand struct {
	Key         string `arg:"" help:"The id of the key."`
	EndSessions bool   `help:"End the live sessions that it bought, too."`
}

// Run ends a key.
func (k keyRmCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	in := apiclient.DeleteKey{}
	if k.EndSessions {
		in.Sessions = "end"
	}
	var kept apiclient.Answer
	left, err := service.DeleteKey(ctx, k.Key, in, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		fmt.Fprintf(w, "%s has ended; left: %s\n", k.Key, strings.Join(names(left.Items), ", "))
	})
}

func names(keys []apiclient.Key) (list []string) {
	for _, k := range keys {
		list = append(list, k.Name)
	}
	return list
}
