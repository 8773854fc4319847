package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/skip2/go-qrcode"

	"agentproxy/adapters/apiclient"
)

type eventsCommand struct {
	Session string `arg:"" optional:"" help:"A session of apx ls; left out: the account."`
	Follow  bool   `help:"Of the account: go on with what happens, until it is interrupted."`
	After   string `help:"Of the account: what follows this cursor, which --json shows as next."`
	Types   string `help:"Of the account: only these types, such as recharge.paid,session.active."`
}

// Run prints the newest events of a session, or the events of the account, the oldest first.
func (o eventsCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	if o.Session == "" {
		return o.account(ctx, service, c, s)
	}
	if o.Follow || o.After != "" || o.Types != "" {
		return errors.New("--follow, --after and --types are of the account's events: leave the session out")
	}
	var kept apiclient.Answer
	list, err := service.ListSessionEvents(ctx, o.Session, apiclient.ListSessionEvents{PageSize: 50},
		apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		var rows [][]string
		for _, e := range list.Items {
			rows = append(rows, []string{stamp(&e.At), string(e.Source), e.Type, text(e.TargetHost), text(e.StatusCode),
				text(e.Code), text(e.ExitIP), strconv.Itoa(e.Count)})
		}
		table(w, []string{"at", "source", "type", "target", "status", "code", "exit", "count"}, rows)
	})
}

// account prints pages of the account's events until there is none left, and with Follow what happens then.
func (o eventsCommand) account(ctx context.Context, service *service, c *options, s streams) error {
	const page, wait = 100, 25
	in := apiclient.ListEvents{After: o.After, Types: o.Types, Limit: page}
	for {
		var kept apiclient.Answer
		list, err := service.ListEvents(ctx, in, apiclient.Keep(&kept))
		if err != nil {
			if o.Follow && ctx.Err() != nil {
				return nil // interrupted
			}
			return err
		}
		if len(list.Items) > 0 || c.JSON && !o.Follow {
			err = c.showData(s, kept.Data(), func(w io.Writer) {
				for _, e := range list.Items {
					fmt.Fprintln(w, stamp(&e.Timestamp), e.Type, data(e.Data))
				}
			})
			if err != nil {
				return err
			}
		}
		if len(list.Items) < page && !o.Follow {
			return nil
		}
		if in.After = list.Next; o.Follow {
			in.Wait = wait
		}
	}
}

// data returns the data of an event as name=value, sorted by name.
func data(of map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, name+"="+of[name])
	}
	return strings.Join(clean(parts), " ")
}

type transactionsCommand struct {
	Key string `help:"Only those of sessions that this key bought: its id."`
}

// Run prints the newest movements of the balance.
func (t transactionsCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	var kept apiclient.Answer
	list, err := service.ListTransactions(ctx, apiclient.ListTransactions{PageSize: 50, Key: t.Key}, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		var rows [][]string
		for _, t := range list.Items {
			balance := ""
			if t.BalanceAfter != nil {
				balance = t.BalanceAfter.String()
			}
			rows = append(rows, []string{stamp(&t.CreatedAt), string(t.Type), t.Amount.String(), balance, text(t.SessionID)})
		}
		table(w, []string{"at", "type", "amount", "balance", "session"}, rows)
	})
}

type rechargeCommand struct {
	Amount string `arg:"" help:"US dollars, 1 to 10000."`
	ID     string `name:"id" help:"The same text orders once."`
}

// Run orders a recharge: where a person sends money, and on a terminal the address as a QR code.
func (r rechargeCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	in := apiclient.CreateRecharge{Amount: json.Number(r.Amount), IdempotencyKey: r.ID}
	if !areNumbers(in.Amount) {
		return fmt.Errorf("%w: the amount must be a number", errMisuse)
	}
	var kept apiclient.Answer
	o, err := service.CreateRecharge(ctx, in, apiclient.Keep(&kept))
	if err != nil {
		return err
	}
	code, err := qrcode.New(o.WalletAddress, qrcode.Medium)
	if err != nil {
		return fmt.Errorf("draw the address %q: %w", o.WalletAddress, err)
	}
	return c.show(s, kept, nil, func(w io.Writer) {
		if !isTerminal(w) {
			fmt.Fprintf(w, "%s\t%s USDT\t%s\t%s\t%s\n", o.OrderID, o.AmountUSDT, o.Network, o.WalletAddress,
				stamp(&o.ExpireTime))
			return
		}
		fmt.Fprintf(w, "%s\nSend %s USDT (%s) to %s before %s. The order is %s.\n", code.ToSmallString(false), o.AmountUSDT,
			o.Network, o.WalletAddress, stamp(&o.ExpireTime), o.OrderID)
		if o.Test {
			fmt.Fprintln(w, "This service takes test money: send no real one.")
		}
	})
}
