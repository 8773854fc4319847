// Command waitpaid is an agent that orders a recharge, shows its person where to send the money, and goes on once
// that has arrived. Nothing calls it: it waits for the event recharge.paid. AGENTPROXY_URL and AGENTPROXY_API_KEY are
// those of the other examples, AMOUNT is in US dollars.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"agentproxy/adapters/apiclient"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := apiclient.New(cmp.Or(os.Getenv("AGENTPROXY_URL"), "http://127.0.0.1:8080"), os.Getenv("AGENTPROXY_API_KEY"))
	if err == nil {
		err = run(ctx, c, cmp.Or(os.Getenv("AMOUNT"), "5"))
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, c *apiclient.Client, amount string) error {
	// From here on: what happens while the order is shown is not missed.
	events, err := c.ListEvents(ctx, apiclient.ListEvents{})
	for err == nil && len(events.Items) > 0 {
		events, err = c.ListEvents(ctx, apiclient.ListEvents{After: events.Next})
	}
	if err != nil {
		return err
	}
	order, err := c.CreateRecharge(ctx, apiclient.CreateRecharge{Amount: json.Number(amount)})
	if err != nil {
		return err
	}
	fmt.Printf("send %s to %s\n", order.AmountUSDT, order.WalletAddress)
	for {
		events, err = c.ListEvents(ctx, apiclient.ListEvents{After: events.Next, Wait: 30,
			Types: "recharge.paid,recharge.expired"})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Data["order_id"] != order.OrderID {
				continue
			}
			if e.Type != "recharge.paid" {
				return errors.New("nothing was paid in time")
			}
			fmt.Println("paid")
			return nil
		}
	}
}
