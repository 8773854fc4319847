package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/skip2/go-qrcode"
)

type eventsCommand struct{ one }

// Run prints the newest events of a session.
func (o eventsCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			At     string  `json:"at"`
			Source string  `json:"source"`
			Type   string  `json:"type"`
			Host   *string `json:"target_host"`
			Status *int    `json:"status_code"`
			Code   *string `json:"code"`
			Exit   *string `json:"exit_ip"`
			Count  int     `json:"count"`
		} `json:"items"`
	}
	data, err := service.read(ctx, "GET", "/sessions/"+url.PathEscape(o.Session)+"/events?page_size=50", "", nil, &list)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) {
		var rows [][]string
		for _, e := range list.Items {
			rows = append(rows, []string{e.At, e.Source, e.Type, text(e.Host), text(e.Status), text(e.Code), text(e.Exit),
				strconv.Itoa(e.Count)})
		}
		table(w, []string{"at", "source", "type", "target", "status", "code", "exit", "count"}, rows)
	})
}

type transactionsCommand struct{}

// Run prints the newest movements of the balance.
func (transactionsCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			At      string      `json:"created_at"`
			Type    string      `json:"type"`
			Amount  json.Number `json:"amount"`
			Balance json.Number `json:"balance_after"`
			Session *string     `json:"session_id"`
		} `json:"items"`
	}
	data, err := service.read(ctx, "GET", "/billing/transactions?page_size=50", "", nil, &list)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) {
		var rows [][]string
		for _, t := range list.Items {
			rows = append(rows, []string{t.At, t.Type, t.Amount.String(), t.Balance.String(), text(t.Session)})
		}
		table(w, []string{"at", "type", "amount", "balance", "session"}, rows)
	})
}

type rechargeCommand struct {
	Amount string `arg:"" help:"US dollars, 1 to 10000."`
	ID     string `name:"id" help:"The same text orders once."`
}

// Run orders a recharge: where a person sends money, and on a terminal the address as a QR code.
func (r rechargeCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	body := map[string]any{"amount": json.Number(r.Amount)}
	if _, err := json.Marshal(body); err != nil {
		return fmt.Errorf("%w: the amount must be a number", errMisuse)
	}
	var o struct {
		OrderID string      `json:"order_id"`
		USDT    json.Number `json:"amount_usdt"`
		Network string      `json:"network"`
		Wallet  string      `json:"wallet_address"`
		Expires string      `json:"expire_time"`
		Test    bool        `json:"test"`
	}
	data, err := service.read(ctx, "POST", "/billing/recharge", r.ID, body, &o)
	if err != nil {
		return err
	}
	code, err := qrcode.New(o.Wallet, qrcode.Medium)
	if err != nil {
		return fmt.Errorf("draw the address %q: %w", o.Wallet, err)
	}
	return c.show(s, data, func(w io.Writer) {
		if !isTerminal(w) {
			fmt.Fprintf(w, "%s\t%s USDT\t%s\t%s\t%s\n", o.OrderID, o.USDT, o.Network, o.Wallet, o.Expires)
			return
		}
		fmt.Fprintf(w, "%s\nSend %s USDT (%s) to %s before %s. The order is %s.\n", code.ToSmallString(false), o.USDT,
			o.Network, o.Wallet, o.Expires, o.OrderID)
		if o.Test {
			fmt.Fprintln(w, "This service takes test money: send no real one.")
		}
	})
}
